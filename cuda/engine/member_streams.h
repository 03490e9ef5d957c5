#pragma once

#include <cstdint>
#include <vector>

#include "core/runtime/function_ref.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A stream per member; a single member needs none.
class MemberStreams {
 public:
  explicit MemberStreams(std::int64_t members)
      : streams_(members > 1 ? members : 0), joins_(streams_.size()) {}

  /// Starts work(member's stream, member) for all members side by side, after the earlier and before the
  /// later work of `stream`.
  void run(Stream stream, FunctionRef<void(Stream of_member, std::int64_t member)> work) {
    if (streams_.empty()) {
      work(stream, 0);
      return;
    }
    fork_.record(stream);
    for (std::size_t member = 0; member < streams_.size(); ++member) {
      const Stream own = streams_[member].get();
      fork_.hold(own);
      work(own, static_cast<std::int64_t>(member));
      joins_[member].record(own);
      joins_[member].hold(stream);
    }
  }

 private:
  std::vector<OwnedStream> streams_;
  std::vector<Event> joins_;
  Event fork_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
