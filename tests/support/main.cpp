#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "core/runtime/log.h"

namespace {

/// A warning that no test expected is a failure: tests that provoke one take it with ExpectedWarnings.
class NoSurprises : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    olrank::set_log_sink([this](olrank::LogLevel level, std::string_view message) {
      if (level == olrank::LogLevel::kWarning) {
        const std::lock_guard lock(mutex_);
        warnings_.emplace_back(message);
      }
    });
  }
  void OnTestEnd(const testing::TestInfo&) override {
    olrank::set_log_sink({});
    const std::lock_guard lock(mutex_);
    for (const std::string& warning : warnings_) ADD_FAILURE() << "logged a warning: " << warning;
    warnings_.clear();
  }

  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new NoSurprises);
  return RUN_ALL_TESTS();
}
