#pragma once

#include <cstdint>
#include <span>

#include "recommend/trees/factor_rows.h"
#include "recommend/trees/part_fit.h"
#include "recommend/trees/preference_pairs.h"

namespace olrank {

/// Gathers the preference pairs of rows of one side, users or items.
class PairSource {
 public:
  PairSource() = default;
  virtual ~PairSource() = default;
  PairSource(const PairSource&) = delete;
  PairSource& operator=(const PairSource&) = delete;

  /// The terms of the pairs that concern `rows`. `current` are the factors of all rows of the side.
  virtual NodePairs gather(std::span<const std::int32_t> rows, const FactorRows& current) const = 0;
  virtual bool concerns(std::int64_t row) const = 0;
};

/// z = u·(v_j − v_l) of users with given item factors: a pair is one user's, and w = v_j − v_l.
class UserPairs : public PairSource {
 public:
  /// Both outlive this.
  UserPairs(std::span<const PreferencePair> pairs, std::int64_t users, const FactorRows& items);

  NodePairs gather(std::span<const std::int32_t> rows, const FactorRows& current) const override;
  bool concerns(std::int64_t row) const override { return !index_.of(row).empty(); }

 private:
  std::span<const PreferencePair> pairs_;
  const FactorRows& items_;
  PairIndex index_;
};

/// z = u·(v_j − v_l) of items with given user factors: w = u. A pair may have both its items among the
/// rows; else the other item keeps its current factor.
class ItemPairs : public PairSource {
 public:
  ItemPairs(std::span<const PreferencePair> pairs, std::int64_t items, const FactorRows& users);

  NodePairs gather(std::span<const std::int32_t> rows, const FactorRows& current) const override;
  bool concerns(std::int64_t row) const override { return !index_.of(row).empty(); }

 private:
  std::span<const PreferencePair> pairs_;
  const FactorRows& users_;
  PairIndex index_;
};

}  // namespace olrank
