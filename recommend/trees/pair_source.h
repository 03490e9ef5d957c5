#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/interface.h"
#include "recommend/factors/factor_matrix.h"
#include "recommend/reviews.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/squared_sums.h"

namespace olrank {

/// A sample of D: `per_rating` pairs for each rating (i, j), each with an item l drawn uniformly until (j,
/// l) is in D_i, at most eight times. In the order of users and items; a pair's draws belong to the seed,
/// the pass, the user and the item.
std::vector<ItemPair> sample_preference_pairs(const RatingRows& by_user, std::int64_t items,
                                              std::int64_t per_rating, std::uint64_t seed,
                                              std::int64_t pass);

/// A term −log σ(z) of the loss of some rows, with z = offset + w·(x(plus) − x(minus)). `plus` and `minus`
/// are places among the rows; −1 stands for something whose factor is fixed and inside w or the offset.
struct PairTerm {
  std::int32_t plus = -1;
  std::int32_t minus = -1;
  float offset = 0.0F;
};

/// Which pairs concern each row, in the order of the pairs.
using PairIndex = Groups<std::int64_t>;

/// The terms of a node's pairs with their vectors w, one padded row each.
struct NodePairs {
  std::vector<PairTerm> terms;
  FactorRows vectors;
};

/// How the factors of parts are fitted where the closed form does not reach.
struct DescentSettings {
  double pair_weight = 1.0;  // λ_b; 0 leaves the closed form, which is exact then
  int steps = 30;
  double step_size = 0.1;  // of AdaGrad
};

struct PartFit {
  std::array<std::vector<double>, kTreeBranches> factors;
  /// Σ_c squared error + λ‖x_c − anchor‖² − λ_b B: Jia, PhD thesis, UVA 2022, Eq. (4.2.6), with squared
  /// norms. It prints i ∈ E in the pairs of the part L; that is i ∈ L.
  double objective = 0.0;
};

/// −Σ log σ(z) over the terms, for rows in parts; `part_of` gives a row's part.
double pair_loss_of_parts(const NodePairs& pairs, std::span<const std::uint8_t> part_of,
                          const std::array<std::vector<double>, kTreeBranches>& factors);

/// Fits the factors of the parts that have rows: the closed form of the squared part, then AdaGrad on all
/// of the objective, of whose iterates the best is kept. Parts without rows keep `without_rows`. `sums` are
/// the squared sums of each part.
PartFit fit_parts(const std::array<std::vector<double>, kTreeBranches>& sums,
                  const std::array<std::int64_t, kTreeBranches>& rows, std::span<const double> anchor,
                  std::span<const double> without_rows, double lambda, const NodePairs& pairs,
                  std::span<const std::uint8_t> part_of, const DescentSettings& settings);

/// Gathers the preference pairs of rows of one side, users or items. The pairs outlive this.
class PairSource : public Interface {
 public:
  /// The terms of the pairs that concern `rows`. `current` are the factors of all rows of the side.
  virtual NodePairs gather(std::span<const std::int32_t> rows, const FactorRows& current) const = 0;
  bool concerns(std::int64_t row) const { return !index_.of(row).empty(); }

 protected:
  /// `others` are the factors of the other side, which outlive this, too.
  PairSource(std::span<const ItemPair> pairs, const FactorRows& others, PairIndex index)
      : pairs_(pairs), others_(others), index_(std::move(index)) {}

  std::span<const ItemPair> pairs_;
  const FactorRows& others_;
  PairIndex index_;
};

/// z = u·(v_j − v_l) of users with given item factors: a pair is one user's, and w = v_j − v_l.
class UserPairs : public PairSource {
 public:
  UserPairs(std::span<const ItemPair> pairs, std::int64_t users, const FactorRows& items);
  NodePairs gather(std::span<const std::int32_t> rows, const FactorRows& current) const override;
};

/// z = u·(v_j − v_l) of items with given user factors: w = u. A pair may have both its items among the
/// rows; else the other item keeps its current factor.
class ItemPairs : public PairSource {
 public:
  ItemPairs(std::span<const ItemPair> pairs, std::int64_t items, const FactorRows& users);
  NodePairs gather(std::span<const std::int32_t> rows, const FactorRows& current) const override;
};

struct MatrixStartSettings {
  int dimension = 20;
  std::int64_t passes = 10;
  double step_size = 0.1;    // of AdaGrad
  double penalty = 0.02;     // of a squared factor, at each rating
  double pair_weight = 1.0;  // λ_b
  std::uint64_t seed = 1;
};

/// Item factors by plain matrix factorisation: Jia, Toward Reliable Decision-making in Information Systems,
/// PhD thesis, UVA 2022, Eq. (4.2.2), by AdaGrad over ratings, each with one pair, in the order of users.
FactorRows factorise_ratings(const RatingRows& by_user, std::int64_t items,
                             const MatrixStartSettings& settings);

}  // namespace olrank
