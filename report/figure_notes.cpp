#include "report/figure_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/text/counted.h"
#include "report/curves.h"
#include "report/findings.h"

namespace olrank {

std::vector<const RankerTrials*> shown_rankers(const UserResults& user) {
  std::vector<const RankerTrials*> shown;
  for (const RankerTrials& ranker : user.rankers) shown.push_back(&ranker);
  if (shown.size() <= kMostRankers) return shown;
  const auto height = [](const RankerTrials* ranker) {
    const MeanCurve& curve = ranker->curve(Measure::kOfflineNdcg);
    return curve.empty() ? -1.0 : curve.back().estimate.mean;
  };
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const RankerTrials* a, const RankerTrials* b) { return height(a) > height(b); });
  shown.resize(kMostRankers);
  std::sort(shown.begin(), shown.end(),
            [](const RankerTrials* a, const RankerTrials* b) { return a->ranker < b->ranker; });
  return shown;
}

const RankerTrials* baseline_of(const Report& report, const UserResults& user, const FinalTable& table) {
  const std::optional<std::size_t> row = baseline_row(report, table);
  for (const RankerTrials& ranker : user.rankers) {
    if (row && user.rankers.size() > 1 && ranker.ranker == table.rows[*row]) return &ranker;
  }
  return nullptr;
}

std::string band_note(const Report& report, const UserResults& user, const FinalTable& table) {
  std::size_t units = 0;
  bool over_folds = false;
  for (const RankerTrials& ranker : user.rankers) {
    const MeanCurve& curve = ranker.curve(Measure::kOfflineNdcg);
    units = std::max(units, most_units(curve));
    for (const RoundEstimate& point : curve) over_folds = over_folds || point.estimate.over_folds;
  }
  if (units < 2)
    return "The lines have no bands, because a single seed does not show the spread between seeds.";
  const std::string unit = over_folds ? "fold" : "seed";
  if (units < kFewUnits) {
    return fmt::format(
        "Thick lines are means, thin lines the {0} {1}s. There are no bands: over {0} {1}s they would be "
        "too "
        "wide to say anything.",
        units, unit);
  }
  const RankerTrials* baseline = baseline_of(report, user, table);
  std::string note = fmt::format("Lines are means over {} {}s. Bands are 95 % t intervals", units, unit);
  if (baseline != nullptr) {
    note += fmt::format(": of paired differences where a title says 'minus {}', else of means",
                        report.rankers[baseline->ranker].name);
  } else {
    note += " of means";
  }
  return note + (over_folds ? "." : "; they hold for this fold only.");
}

std::vector<std::string> thinning_notes(const Report& report, const UserResults& user) {
  std::vector<std::string> notes;
  for (const RankerTrials& ranker : user.rankers) {
    std::size_t before = 0;
    for (const RoundEstimate& point : ranker.curve(Measure::kOfflineNdcg)) {
      const std::size_t trials = point.estimate.values;
      if (trials < before) {
        notes.push_back(fmt::format("{}: from round {} on, the mean covers {} instead of {}.",
                                    report.rankers[ranker.ranker].name, point.round,
                                    counted(trials, "trial"), before));
      }
      before = trials;
    }
  }
  return notes;
}

}  // namespace olrank
