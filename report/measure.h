#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace olrank {

/// What an evaluation tells; a curve of a report is one of these by rounds.
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
  kMilliseconds,  // a round, since the evaluation before; evaluations themselves left out
};
inline constexpr std::size_t kMeasures = 16;

/// One value a measure; NaN for what a trial does not know.
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
/// What names its files and columns: "offline-ndcg".
std::string slug_of(Measure measure);
/// One sentence on what it is.
std::string explanation_of(Measure measure, std::int64_t cutoff);

}  // namespace olrank
