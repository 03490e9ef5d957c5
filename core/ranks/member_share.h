#pragma once

#include <cstdint>
#include <span>

#include "core/ranks/rank_group.h"

namespace olrank {

/// The members of an ensemble that this process has: all of them, or one of several ranks' shares, which
/// follow one another and differ by at most one member.
class MemberShare {
 public:
  /// Throws InvalidArgument for more ranks than members.
  explicit MemberShare(std::int64_t members, RankGroup* group = nullptr);

  std::int64_t members() const { return members_; }  // of all ranks together
  std::int64_t first() const { return first_of(rank()); }
  std::int64_t count() const { return count_of(rank()); }
  std::int64_t first_of(int rank) const { return members_ * rank / ranks(); }
  std::int64_t count_of(int rank) const { return first_of(rank + 1) - first_of(rank); }
  bool is_whole() const { return group_ == nullptr; }
  /// Null where this process has all members.
  RankGroup* group() const { return group_; }

  /// Completes [members × each], of which this rank has filled its own rows. Returns the largest of the
  /// ranks' `largest`, which travels along.
  double complete(std::span<float> values, std::int64_t each, double largest = 0.0) const;

 private:
  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int ranks() const { return group_ == nullptr ? 1 : group_->ranks(); }

  std::int64_t members_;
  RankGroup* group_;
};

}  // namespace olrank
