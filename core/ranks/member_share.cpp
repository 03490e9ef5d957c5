#include "core/ranks/member_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace olrank {
namespace {

constexpr std::int64_t kRowBytesAtOnce = 1 << 18;  // of an exchange, so that its memory stays small

}  // namespace

MemberShare::MemberShare(std::int64_t members, RankGroup* group) : members_(members), group_(group) {
  if (ranks() <= members) return;
  throw InvalidArgument(
      fmt::format("{} ranks are more than an ensemble of {} members can use: start at most {}.", ranks(),
                  members, members));
}

double MemberShare::complete_rows(std::span<std::byte> rows, std::int64_t row_bytes, double largest) const {
  if (is_whole()) return largest;
  const std::int64_t most = (members_ + ranks() - 1) / ranks();
  std::vector<std::byte> mine;
  double found = largest;
  for (std::int64_t begin = 0; begin == 0 || begin < row_bytes; begin += kRowBytesAtOnce) {
    const std::int64_t bytes = std::min(kRowBytesAtOnce, row_bytes - begin);
    mine.assign(sizeof largest + most * bytes, std::byte{});
    std::memcpy(mine.data(), &largest, sizeof largest);
    const auto part = [&](std::int64_t member) { return rows.data() + member * row_bytes + begin; };
    for (std::int64_t k = 0; bytes > 0 && k < count(); ++k)
      std::memcpy(mine.data() + sizeof largest + k * bytes, part(first() + k), bytes);
    group_->all_gather(mine);
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::byte* theirs = group_->gathered(rank).data();
      double other = 0.0;
      std::memcpy(&other, theirs, sizeof other);
      found = std::max(found, other);
      for (std::int64_t k = 0; bytes > 0 && k < count_of(rank); ++k)
        std::memcpy(part(first_of(rank) + k), theirs + sizeof other + k * bytes, bytes);
    }
  }
  return found;
}

}  // namespace olrank
