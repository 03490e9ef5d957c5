#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/explore/exploring_list.h"
#include "core/metrics/metric_options.h"

namespace olrank {

/// An evaluation measures these; the report plots each over the rounds. The metrics that an experiment adds
/// with protocol.metrics are further values, from measure_of().
enum class Measure : std::size_t {
  kOfflineNdcg,
  kOnlineNdcg,
  kDiscountedNdcg,
  kRegret,
  kExaminedRegret,
  kCertainShare,
  kBlocks,
  kCosine,
  kWidthRatio,
  kWidthRatioLow,   // 10th percentile
  kWidthRatioHigh,  // 90th percentile
  kFalseCertain,
  kDecisionsDiffer,
  kMilliseconds,  // per round since the previous evaluation, excluding evaluation
  // Random orders of the same queries' documents have these, in the order of the first four.
  kRandomOfflineNdcg,
  kRandomOnlineNdcg,
  kRandomDiscountedNdcg,
  kRandomRegret,
  // The balance of exposure between groups of documents.
  kUnfairness,
  kFairShare,
  kViolations,
  kUnrealisable,
  kBlockSize,  // at the first of ListCertainty::kBlockRanks; those at the others follow
};
inline constexpr std::size_t kMeasures =
    static_cast<std::size_t>(Measure::kBlockSize) + ListCertainty::kBlockRanks.size();

/// The size of the block at this place of ListCertainty::kBlockRanks.
constexpr Measure block_size_at(std::size_t place) {
  return static_cast<Measure>(static_cast<std::size_t>(Measure::kBlockSize) + place);
}

/// An offline metric of protocol.metrics, or what random orders have of it.
Measure measure_of(const NamedMetric& metric);
Measure random_measure_of(const NamedMetric& metric);
/// The metric of such a measure, random or not; none for the measures that every experiment has.
std::optional<NamedMetric> metric_of(Measure measure);
/// Whether a stage's time counts as time of rounds. Evaluation and the comparison with exact widths do not.
bool is_of_rounds(std::string_view stage);

/// One value per measure; NaN if the trial does not report it.
class MeasureValues {
 public:
  MeasureValues();
  double& operator[](Measure measure);
  double operator[](Measure measure) const;

  /// The measures of protocol.metrics, in the order of NamedMetric, and then their random orders.
  std::vector<Measure> added() const;

 private:
  std::array<double, kMeasures> values_;
  std::map<Measure, double> added_;
};

/// "Offline NDCG@10".
std::string title_of(Measure measure, std::int64_t cutoff);
/// Names it for file and column names: "offline-ndcg".
std::string slug_of(Measure measure);
/// The measure's value for random orders, where there is one.
std::optional<Measure> random_baseline(Measure measure);
/// A caption of one sentence.
std::string explanation_of(Measure measure, std::int64_t cutoff);

}  // namespace olrank
