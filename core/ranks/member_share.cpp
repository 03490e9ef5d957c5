#include "core/ranks/member_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace olrank {
namespace {

constexpr std::int64_t kColumnsAtOnce = 1 << 16;  // of an exchange, so that its memory stays small

}  // namespace

MemberShare::MemberShare(std::int64_t members, RankGroup* group) : members_(members), group_(group) {
  if (ranks() <= members) return;
  throw InvalidArgument(
      fmt::format("{} ranks are more than an ensemble of {} members can use: start at most {}.", ranks(),
                  members, members));
}

double MemberShare::complete(std::span<float> values, std::int64_t each, double largest) const {
  if (is_whole()) return largest;
  const std::int64_t most = (members_ + ranks() - 1) / ranks();
  std::vector<std::byte> mine;
  double found = largest;
  for (std::int64_t column = 0; column == 0 || column < each; column += kColumnsAtOnce) {
    const std::int64_t columns = std::min(kColumnsAtOnce, each - column);
    const std::int64_t row_bytes = columns * static_cast<std::int64_t>(sizeof(float));
    mine.assign(sizeof largest + most * row_bytes, std::byte{});
    std::memcpy(mine.data(), &largest, sizeof largest);
    const auto row = [&](std::int64_t member) { return values.data() + member * each + column; };
    for (std::int64_t k = 0; row_bytes > 0 && k < count(); ++k)
      std::memcpy(mine.data() + sizeof largest + k * row_bytes, row(first() + k), row_bytes);
    group_->all_gather(mine);
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::byte* theirs = group_->gathered(rank).data();
      double other = 0.0;
      std::memcpy(&other, theirs, sizeof other);
      found = std::max(found, other);
      for (std::int64_t k = 0; row_bytes > 0 && k < count_of(rank); ++k)
        std::memcpy(row(first_of(rank) + k), theirs + sizeof other + k * row_bytes, row_bytes);
    }
  }
  return found;
}

}  // namespace olrank
