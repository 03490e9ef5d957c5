#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/ranks/member_share.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Completes arrays by member with what the devices of other ranks computed, over NCCL. Ranks make the same
/// calls in the same order.
class RankGather {
 public:
  /// Of an array of [members] rows: where the first begins, and the bytes of each.
  struct Rows {
    void* first = nullptr;
    std::int64_t bytes = 0;
  };

  /// Joins the devices of all ranks; each calling thread has selected its own.
  explicit RankGather(const MemberShare& share);
  ~RankGather();
  RankGather(const RankGather&) = delete;
  RankGather& operator=(const RankGather&) = delete;

  /// Starts completing the arrays, of which this rank's rows are filled, in one exchange.
  void complete(Stream stream, std::span<const Rows> arrays);

 private:
  struct Communicator;
  MemberShare share_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
