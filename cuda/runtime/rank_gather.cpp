#include "cuda/runtime/rank_gather.h"

#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <exception>
#include <string>

#include "core/error.h"

namespace olrank::cuda {
namespace {

void check_nccl(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw CudaError(
      fmt::format("{} failed: {}. Ranks of one machine need a card each (LOCAL_RANK, --device cuda); "
                  "NCCL_DEBUG=INFO says "
                  "more.",
                  call, ncclGetErrorString(result)));
}

std::byte* row(const RankGather::Rows& rows, std::int64_t member) {
  return static_cast<std::byte*>(rows.first) + member * rows.bytes;
}

}  // namespace

#define OLRANK_NCCL_CHECK(call) check_nccl(call, #call)

struct RankGather::Communicator {
  explicit Communicator(RankGroup& group) {
    ncclUniqueId id{};
    if (group.is_first()) OLRANK_NCCL_CHECK(ncclGetUniqueId(&id));
    const std::string text = group.text_of_first(std::string(id.internal, sizeof id.internal));
    std::memcpy(id.internal, text.data(), sizeof id.internal);
    OLRANK_NCCL_CHECK(ncclCommInitRank(&communicator, group.ranks(), id, group.rank()));
  }
  ~Communicator() {
    // Destroying it in order would wait for ranks that are no longer there.
    if (std::uncaught_exceptions() > 0) {
      ncclCommAbort(communicator);
    } else {
      ncclCommDestroy(communicator);
    }
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ncclComm_t communicator = nullptr;
};

RankGather::RankGather(const MemberShare& share)
    : share_(share), communicator_(std::make_unique<Communicator>(*share.group())) {}

RankGather::~RankGather() = default;

void RankGather::complete(Stream stream, std::span<const Rows> arrays) {
  const ncclComm_t communicator = communicator_->communicator;
  const int ranks = share_.group()->ranks();
  const bool even = share_.members() % ranks == 0;
  // The group is closed after an error, too: within one, aborting would wait for its end.
  ncclResult_t first_error = ncclSuccess;
  const auto note = [&](ncclResult_t result) {
    if (first_error == ncclSuccess) first_error = result;
  };
  OLRANK_NCCL_CHECK(ncclGroupStart());
  for (const Rows& rows : arrays) {
    if (even) {
      note(ncclAllGather(row(rows, share_.first()), rows.first,
                         static_cast<std::size_t>(share_.count() * rows.bytes), ncclUint8, communicator,
                         stream));
      continue;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      std::byte* theirs = row(rows, share_.first_of(rank));
      note(ncclBroadcast(theirs, theirs, static_cast<std::size_t>(share_.count_of(rank) * rows.bytes),
                         ncclUint8, rank, communicator, stream));
    }
  }
  note(ncclGroupEnd());
  check_nccl(first_error, "An exchange between members");
}

}  // namespace olrank::cuda
