#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/fair/doc_group.h"
#include "core/io/state_archive.h"

namespace olrank {

/// A figure of each two groups, in the order (A, B), (A, C), (B, C), (A, D), …
using PairFigures = std::array<double, kMostPairs>;

/// The place of two groups among pairs; `first` comes before `second`.
constexpr std::size_t pair_of(std::size_t first, std::size_t second) {
  return second * (second - 1) / 2 + first;
}

/// How exposure is counted and how far apart the groups may get. Jia, "Toward Reliable Decision-making in
/// Information Systems", PhD thesis, University of Virginia, 2022, Eq. (3.1.1): a system is fair iff
/// |UF_t| ≤ ε in every round, where UF_t = Σ_{s ≤ t} (Exposure_s(A) − β · Exposure_s(B)). Of more than two
/// groups each two have an UF, with a β of their own; β_gh = β_Ah / β_Ag makes these transitive.
struct ExposureRule {
  std::vector<double> examination;  // P(1), …, P(k): how likely each rank is examined
  std::vector<double> beta = {1.0};  // β > 0: exposure of A per exposure of B, of C, … that counts as fair
  double epsilon = 1.0;              // ε ≥ 0, in the units of `examination`

  std::size_t groups() const { return beta.size() + 1; }
  std::size_t pairs() const { return groups() * beta.size() / 2; }
  /// β_gh, for g before h.
  double beta_of(std::size_t first, std::size_t second) const {
    return first == 0 ? beta[second - 1] : beta[second - 1] / beta[first - 1];
  }
  /// The exposure of a document at `rank`, from 0; none beyond the last P.
  double exposure_at(std::size_t rank) const { return rank < examination.size() ? examination[rank] : 0.0; }
  /// Adds what the exposure of a group's document adds to the unfairness of its pairs.
  void add(DocGroup group, double exposure, PairFigures& unfairness) const {
    const std::size_t one = index_of(group);
    for (std::size_t other = 0; other < groups(); ++other) {
      if (other > one) unfairness[pair_of(one, other)] += exposure;
      if (other < one) unfairness[pair_of(other, one)] -= beta_of(other, one) * exposure;
    }
  }
  /// UF of the pair that is farthest apart.
  double farthest(const PairFigures& unfairness) const {
    double found = unfairness[0];
    for (std::size_t pair = 1; pair < pairs(); ++pair) {
      if (std::abs(unfairness[pair]) > std::abs(found)) found = unfairness[pair];
    }
    return found;
  }

  friend bool operator==(const ExposureRule&, const ExposureRule&) = default;
};

/// A ranker may know this about fairness when it makes a list.
struct FairRound {
  std::span<const DocGroup> groups;    // [V] by document
  const ExposureRule* rule = nullptr;  // never null
  PairFigures unfairness{};            // UF_{t−1}
};

/// The exposure of the groups in all lists so far.
class ExposureLedger {
 public:
  /// Adds a list, with each rank's P as its exposure. `groups` are by document.
  void observe(const ExposureRule& rule, std::span<const DocGroup> groups,
               std::span<const std::int32_t> shown);
  /// Adds a list, of which the user examined what `examined` says: exposure 1 each.
  void observe_examined(const ExposureRule& rule, std::span<const DocGroup> groups,
                        std::span<const std::int32_t> shown, std::span<const std::uint8_t> examined);

  const PairFigures& unfairness() const { return unfairness_; }  // UF_t
  double of(DocGroup group) const { return exposure_[index_of(group)]; }
  std::int64_t rounds() const { return rounds_; }
  /// Rounds so far after which |UF| was at most ε.
  std::int64_t fair_rounds() const { return fair_rounds_; }

  void save(const ExposureRule& rule, StateWriter& state) const;
  void load(const ExposureRule& rule, StateReader& state);

 private:
  void end_round(const ExposureRule& rule, const PairFigures& added);

  PairFigures unfairness_{};
  std::array<double, kMostGroups> exposure_{};
  std::int64_t rounds_ = 0;
  std::int64_t fair_rounds_ = 0;
};

}  // namespace olrank
