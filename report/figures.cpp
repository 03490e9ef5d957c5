#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "core/text/counted.h"
#include "report/bar_figure.h"
#include "report/line_figure.h"
#include "report/scatter_figure.h"

namespace olrank {
namespace {

constexpr Measure kLineMeasures[] = {
    Measure::kOfflineNdcg,     Measure::kDiscountedNdcg, Measure::kOnlineNdcg, Measure::kCertainShare,
    Measure::kBlocks,          Measure::kBlockSize1,     Measure::kBlockSize5, Measure::kBlockSize10,
    Measure::kRegret,          Measure::kCosine,         Measure::kWidthRatio, Measure::kFalseCertain,
    Measure::kDecisionsDiffer, Measure::kMilliseconds};

bool is_share(Measure measure) {
  return measure == Measure::kOfflineNdcg || measure == Measure::kOnlineNdcg ||
         measure == Measure::kCertainShare || measure == Measure::kFalseCertain ||
         measure == Measure::kDecisionsDiffer;
}

LinePoint line_point(double x, const MeanInterval& estimate) {
  return {x, estimate.mean, estimate.mean - estimate.half_width, estimate.mean + estimate.half_width,
          estimate.values};
}

const MeanInterval* estimate_at(const MeanCurve& curve, std::int64_t round) {
  for (const RoundEstimate& point : curve) {
    if (point.round == round) return &point.estimate;
  }
  return nullptr;
}

/// Stages in the order of a round; any others follow.
constexpr std::array<const char*, 7> kStages = {"score",   "width", "rank", "click",
                                                "observe", "train", "eval"};

class UserFigures {
 public:
  UserFigures(const Report& report, const DataResults& data, const UserResults& user,
              const FinalTable& table)
      : report_(report), data_(data), table_(table), shown_(shown_rankers(user)) {
    subtitle_ = fmt::format("{} user, {}", user.user, data.data);
  }

  std::vector<ReportFigure> all() {
    for (const Measure measure : kLineMeasures) add_lines(measure);
    add_blocks_by_rank();
    add_speed_against_quality();
    add_stages();
    return std::move(figures_);
  }

 private:
  const std::string& name_of(const RankerTrials* ranker) const {
    return report_.rankers[ranker->ranker].name;
  }

  void add_lines(Measure measure) {
    LineFigure figure;
    figure.title = title_of(measure, data_.cutoff);
    figure.subtitle = subtitle_;
    figure.whole_bands = measure == Measure::kWidthRatio;
    if (is_share(measure)) {
      figure.lowest = 0.0;
      figure.highest = 1.0;
    } else if (measure != Measure::kCosine) {
      figure.lowest = 0.0;
    }
    for (const RankerTrials* ranker : shown_) {
      const MeanCurve& curve = ranker->curve(measure);
      if (curve.empty()) continue;
      FigureLine line{name_of(ranker), ranker->ranker, {}};
      for (const RoundEstimate& point : curve)
        line.points.push_back(line_point(static_cast<double>(point.round), point.estimate));
      if (measure == Measure::kWidthRatio) spread_by_percentiles(*ranker, line);
      figure.lines.push_back(std::move(line));
    }
    if (figure.lines.empty()) return;
    std::string caption = explanation_of(measure, data_.cutoff);
    figure.baseline = baseline(measure);
    if (!figure.baseline.points.empty())
      caption += " Dashed: what random orders of the same documents have on average.";
    if (measure == Measure::kWidthRatio) caption += " Bands: 10th to 90th percentile of the pairs.";
    figures_.push_back({slug_of(measure), draw_lines(figure), std::move(caption), lines_csv(figure)});
  }

  /// Rankers share their queries, so the curve that reaches furthest stands for all.
  FigureLine baseline(Measure measure) const {
    FigureLine line{"random", 0, {}};
    const std::optional<Measure> random = random_baseline(measure);
    if (!random) return line;
    const MeanCurve* longest = nullptr;
    for (const RankerTrials* ranker : shown_) {
      const MeanCurve& curve = ranker->curve(*random);
      if (longest == nullptr || curve.size() > longest->size()) longest = &curve;
    }
    if (longest == nullptr) return line;
    for (const RoundEstimate& point : *longest) {
      line.points.push_back({static_cast<double>(point.round), point.estimate.mean, std::nan(""),
                             std::nan(""), point.estimate.values});
    }
    return line;
  }

  static void spread_by_percentiles(const RankerTrials& ranker, FigureLine& line) {
    const MeanCurve& low = ranker.curve(Measure::kWidthRatioLow);
    const MeanCurve& high = ranker.curve(Measure::kWidthRatioHigh);
    for (LinePoint& point : line.points) {
      const auto round = static_cast<std::int64_t>(point.x);
      const MeanInterval* below = estimate_at(low, round);
      const MeanInterval* above = estimate_at(high, round);
      point.low = below != nullptr ? below->mean : std::nan("");
      point.high = above != nullptr ? above->mean : std::nan("");
    }
  }

  /// The first, middle and last round with block sizes.
  std::vector<std::int64_t> sample_rounds() const {
    std::vector<std::int64_t> rounds;
    for (const RankerTrials* ranker : shown_) {
      for (const RoundEstimate& point : ranker->curve(Measure::kBlockSize1)) rounds.push_back(point.round);
    }
    std::sort(rounds.begin(), rounds.end());
    rounds.erase(std::unique(rounds.begin(), rounds.end()), rounds.end());
    if (rounds.size() <= 3) return rounds;
    return {rounds.front(), rounds[(rounds.size() - 1) / 2], rounds.back()};
  }

  void add_blocks_by_rank() {
    for (const std::int64_t round : sample_rounds()) {
      LineFigure figure;
      figure.title = fmt::format("Block size by rank, round {}", round);
      figure.subtitle = subtitle_;
      figure.x_name = "rank";
      figure.x_ticks = {1.0, 5.0, 10.0};
      figure.lowest = 0.0;
      for (const RankerTrials* ranker : shown_) {
        FigureLine line{name_of(ranker), ranker->ranker, {}};
        for (const auto& [rank, measure] : {std::pair{1.0, Measure::kBlockSize1},
                                            {5.0, Measure::kBlockSize5},
                                            {10.0, Measure::kBlockSize10}}) {
          const MeanInterval* estimate = estimate_at(ranker->curve(measure), round);
          if (estimate != nullptr) line.points.push_back(line_point(rank, *estimate));
        }
        if (!line.points.empty()) figure.lines.push_back(std::move(line));
      }
      figures_.push_back({fmt::format("block-size-by-rank-{}", round), draw_lines(figure),
                          "Number of documents in the block that contains the rank.", lines_csv(figure)});
    }
  }

  void add_speed_against_quality() {
    const FinalColumn* quality = table_.column(Measure::kOfflineNdcg);
    const FinalColumn* time = table_.column(Measure::kMilliseconds);
    if (quality == nullptr || time == nullptr) return;
    ScatterFigure figure;
    figure.title = "Quality against time";
    figure.subtitle = subtitle_;
    figure.x_name = "milliseconds per round";
    figure.y_name = title_of(Measure::kOfflineNdcg, data_.cutoff);
    for (const RankerTrials* ranker : shown_) {
      const auto row = static_cast<std::size_t>(
          std::find(table_.rows.begin(), table_.rows.end(), ranker->ranker) - table_.rows.begin());
      const MeanInterval& height = quality->cells[row].estimate;
      const MeanInterval& cost = time->cells[row].estimate;
      if (std::isnan(height.mean) || std::isnan(cost.mean)) continue;
      figure.points.push_back({name_of(ranker), ranker->ranker, cost.mean, height.mean,
                               height.mean - height.half_width, height.mean + height.half_width});
    }
    if (figure.points.empty()) return;
    figures_.push_back(
        {"quality-against-time", draw_scatter(figure),
         fmt::format("{} after the last round, against the time per round. Up and to the left is better.{}",
                     figure.y_name,
                     std::isfinite(quality->cells.front().estimate.half_width)
                         ? " Vertical lines: 95 % t intervals."
                         : ""),
         scatter_csv(figure)});
  }

  void add_stages() {
    BarFigure figure;
    figure.title = "Time per round by stage";
    figure.subtitle = subtitle_;
    figure.unit = "ms";
    figure.parts.assign(kStages.begin(), kStages.end());
    std::vector<std::map<std::string, double>> rows;
    for (const RankerTrials* ranker : shown_) {
      const std::map<std::string, double> stages = mean_stages(*ranker, figure.parts);
      if (stages.empty()) continue;
      rows.push_back(stages);
      const std::string details = report_.rankers[ranker->ranker].details();
      figure.bars.push_back({name_of(ranker) + (details.empty() ? "" : ": " + details), {}});
    }
    if (figure.bars.empty()) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const std::string& part : figure.parts) {
        const auto found = rows[i].find(part);
        figure.bars[i].parts.push_back(found == rows[i].end() ? 0.0 : found->second);
      }
    }
    figures_.push_back({"time-by-stage", draw_bars(figure),
                        "Mean over finished trials. Evaluation time is spread over all rounds.",
                        bars_csv(figure)});
  }

  /// Mean milliseconds per round of finished trials, by stage; appends unknown stages to `order`.
  static std::map<std::string, double> mean_stages(const RankerTrials& ranker,
                                                   std::vector<std::string>& order) {
    std::map<std::string, double> sums;
    double trials = 0.0;
    for (const TrialResults* trial : ranker.trials) {
      if (!trial->finished || trial->rounds == 0) continue;
      ++trials;
      for (const auto& [stage, seconds] : trial->stages) {
        sums[stage] += 1000.0 * seconds / static_cast<double>(trial->rounds);
        if (std::find(order.begin(), order.end(), stage) == order.end()) order.push_back(stage);
      }
    }
    for (auto& [stage, sum] : sums) sum /= trials;
    return sums;
  }

  const Report& report_;
  const DataResults& data_;
  const FinalTable& table_;
  std::vector<const RankerTrials*> shown_;
  std::string subtitle_;
  std::vector<ReportFigure> figures_;
};

}  // namespace

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

std::vector<ReportFigure> figures_of(const Report& report, const DataResults& data, const UserResults& user,
                                     const FinalTable& table) {
  return UserFigures(report, data, user, table).all();
}

std::string band_note(const UserResults& user) {
  bool banded = false;
  bool over_folds = false;
  for (const RankerTrials& ranker : user.rankers) {
    for (const RoundEstimate& point : ranker.curve(Measure::kOfflineNdcg)) {
      banded = banded || std::isfinite(point.estimate.half_width);
      over_folds = over_folds || point.estimate.over_folds;
    }
  }
  if (!banded) {
    return "The lines have no bands, because a single seed does not show the spread between seeds.";
  }
  return over_folds ? "Lines are means over folds; bands are 95 % t intervals over fold means."
                    : "Lines are means over seeds; bands are 95 % t intervals for this fold only.";
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
