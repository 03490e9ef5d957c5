#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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
  double complete(std::span<float> values, std::int64_t each, double largest = 0.0) const {
    return complete_rows(std::as_writable_bytes(values), each * std::int64_t{sizeof(float)}, largest);
  }
  /// The values of all members from those of this rank's, equally many of each member.
  template <class T>
  std::vector<T> all_of(const std::vector<T>& own) const {
    if (is_whole()) return own;
    const std::int64_t each = std::ssize(own) / count();
    std::vector<T> all(members_ * each);
    std::copy(own.begin(), own.end(), all.begin() + first() * each);
    complete_rows(std::as_writable_bytes(std::span(all)), each * std::int64_t{sizeof(T)}, 0.0);
    return all;
  }
  /// The other way round.
  template <class T>
  std::vector<T> own_of(const std::vector<T>& all) const {
    const std::int64_t each = std::ssize(all) / members_;
    return {all.begin() + first() * each, all.begin() + (first() + count()) * each};
  }

 private:
  double complete_rows(std::span<std::byte> rows, std::int64_t row_bytes, double largest) const;
  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int ranks() const { return group_ == nullptr ? 1 : group_->ranks(); }

  std::int64_t members_;
  RankGroup* group_;
};

}  // namespace olrank
