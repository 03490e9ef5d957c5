#include "cuda/runtime/rank_gather.h"

#include <cstring>
#include <stdexcept>
#include <vector>

#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/device_work.h"

// The twin of NCCL: a task on the emulated stream that gathers over the ranks' own transport.
namespace olrank::emulated {

struct RankGather::Communicator {};

RankGather::RankGather(const MemberShare& share) : share_(share) {}

RankGather::~RankGather() = default;

void RankGather::complete(Stream stream, std::span<const Rows> arrays) {
  emulation::not_while_recording("An exchange between ranks");
  const std::vector<Rows> all(arrays.begin(), arrays.end());
  for (const Rows& rows : all) {
    if (!emulation::lies_on_device(rows.first, static_cast<std::size_t>(share_.members() * rows.bytes)))
      throw std::logic_error("An exchange between ranks goes beyond one array.");
  }
  emulation::start(stream, [share = share_, all] {
    std::vector<std::byte> own;
    for (const Rows& rows : all) {
      const auto* first = static_cast<const std::byte*>(rows.first) + share.first() * rows.bytes;
      own.insert(own.end(), first, first + share.count() * rows.bytes);
    }
    // Shares may differ in size, so the bytes travel as a text.
    const std::vector<std::string> of_ranks =
        share.group()->all_gather_text({reinterpret_cast<const char*>(own.data()), own.size()});
    for (int rank = 0; rank < share.group()->ranks(); ++rank) {
      const char* theirs = of_ranks[rank].data();
      for (const Rows& rows : all) {
        const std::int64_t bytes = share.count_of(rank) * rows.bytes;
        std::memcpy(static_cast<std::byte*>(rows.first) + share.first_of(rank) * rows.bytes, theirs, bytes);
        theirs += bytes;
      }
    }
  });
}

}  // namespace olrank::emulated
