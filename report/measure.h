#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// What an evaluation measures; the report plots each over the rounds.
enum class Measure : std::size_t {
  kOfflineNdcg,
  kOnlineNdcg,
  kDiscountedNdcg,
  kRegret,
  kCertainShare,
  kBlocks,
  kBlockSize1,
  kBlockSize5,
  kBlockSize10,
  kCosine,
  kWidthRatio,
  kWidthRatioLow,   // 10th percentile
  kWidthRatioHigh,  // 90th percentile
  kFalseCertain,
  kDecisionsDiffer,
  kMilliseconds,  // per round since the previous evaluation, excluding evaluation
  // What random orders of the same queries' documents have.
  kRandomOfflineNdcg,
  kRandomOnlineNdcg,
  kRandomDiscountedNdcg,
  kRandomRegret,
};
inline constexpr std::size_t kMeasures = 20;

/// Whether a stage's time counts as time of rounds. Evaluation and the comparison with exact widths do not.
bool is_of_rounds(std::string_view stage);

/// One value per measure; NaN if the trial does not report it.
class MeasureValues {
 public:
  MeasureValues();
  double& operator[](Measure measure) { return values_[static_cast<std::size_t>(measure)]; }
  double operator[](Measure measure) const { return values_[static_cast<std::size_t>(measure)]; }

 private:
  std::array<double, kMeasures> values_;
};

/// "Offline NDCG@10".
std::string title_of(Measure measure, std::int64_t cutoff);
/// For file and column names: "offline-ndcg".
std::string slug_of(Measure measure);
/// The measure's value for random orders, where there is one.
std::optional<Measure> random_baseline(Measure measure);
/// A caption of one sentence.
std::string explanation_of(Measure measure, std::int64_t cutoff);

}  // namespace olrank
