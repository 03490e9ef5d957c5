#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/fair/doc_group.h"
#include "core/io/state_archive.h"

namespace olrank {

/// How exposure is counted and how far apart the groups may get. Jia, "Toward Reliable Decision-making in
/// Information Systems", PhD thesis, University of Virginia, 2022, Eq. (3.1.1): a system is fair iff
/// |UF_t| ≤ ε in every round, where UF_t = Σ_{s ≤ t} (Exposure_s(A) − β · Exposure_s(B)).
struct ExposureRule {
  std::vector<double> examination;  // P(1), …, P(k): how likely each rank is examined
  double beta = 1.0;                // β > 0: exposure of A per exposure of B that counts as fair
  double epsilon = 1.0;             // ε ≥ 0, in the units of `examination`

  /// What a document adds to the unfairness by being shown at `rank`, from 0; nothing beyond the last P.
  double term(DocGroup group, std::size_t rank) const {
    if (rank >= examination.size()) return 0.0;
    return group == DocGroup::kA ? examination[rank] : -(beta * examination[rank]);
  }

  friend bool operator==(const ExposureRule&, const ExposureRule&) = default;
};

/// What a ranker may know about fairness when it makes a list.
struct FairRound {
  std::span<const DocGroup> groups;    // [V] by document
  const ExposureRule* rule = nullptr;  // never null
  double unfairness = 0.0;             // UF_{t−1}
};

/// The exposure of both groups in all lists so far.
class ExposureLedger {
 public:
  /// Adds a list, with each rank's P as its exposure. `groups` are by document.
  void observe(const ExposureRule& rule, std::span<const DocGroup> groups,
               std::span<const std::int32_t> shown);
  /// Adds a list, of which the user examined what `examined` says: exposure 1 each.
  void observe_examined(const ExposureRule& rule, std::span<const DocGroup> groups,
                        std::span<const std::int32_t> shown, std::span<const std::uint8_t> examined);

  double unfairness() const { return unfairness_; }  // UF_t
  double of(DocGroup group) const { return exposure_[static_cast<std::size_t>(group)]; }
  std::int64_t rounds() const { return rounds_; }
  /// Rounds so far after which |UF| was at most ε.
  std::int64_t fair_rounds() const { return fair_rounds_; }

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  void end_round(const ExposureRule& rule, double added);

  double unfairness_ = 0.0;
  double exposure_[2] = {0.0, 0.0};
  std::int64_t rounds_ = 0;
  std::int64_t fair_rounds_ = 0;
};

}  // namespace olrank
