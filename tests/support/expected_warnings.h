#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/log.h"

namespace olrank {

/// Collects the warnings logged while it is alive, for tests that provoke them.
class ExpectedWarnings {
 public:
  ExpectedWarnings() {
    earlier_ = set_log_sink([this](LogLevel level, std::string_view message) {
      if (level != LogLevel::kWarning) return;
      const std::lock_guard lock(mutex_);
      messages_.emplace_back(message);
    });
  }
  ~ExpectedWarnings() { set_log_sink(earlier_); }
  ExpectedWarnings(const ExpectedWarnings&) = delete;
  ExpectedWarnings& operator=(const ExpectedWarnings&) = delete;

  /// How many contain `text`.
  std::int64_t count(std::string_view text) const {
    const std::lock_guard lock(mutex_);
    return std::count_if(messages_.begin(), messages_.end(), [text](const std::string& message) {
      return message.find(text) != std::string::npos;
    });
  }
  std::vector<std::string> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  // All share it, as ThreadSanitizer takes a mutex on the stack for an earlier one that had its place.
  static inline std::mutex mutex_;
  std::vector<std::string> messages_;
  LogSink earlier_;
};

}  // namespace olrank
