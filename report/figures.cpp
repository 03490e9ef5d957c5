#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "report/bar_figure.h"
#include "report/curves.h"
#include "report/distinct_labels.h"
#include "report/figure_notes.h"
#include "report/findings.h"
#include "report/line_figure.h"
#include "report/number_text.h"
#include "report/scatter_figure.h"

namespace olrank {
namespace {

constexpr Measure kLineMeasures[] = {
    Measure::kOfflineNdcg,     Measure::kDiscountedNdcg, Measure::kUnfairness, Measure::kFairShare,
    Measure::kViolations,      Measure::kUnrealisable,   Measure::kOnlineNdcg, Measure::kCertainShare,
    Measure::kBlocks,          Measure::kBlockSize1,     Measure::kBlockSize5, Measure::kBlockSize10,
    Measure::kRegret,          Measure::kCosine,         Measure::kWidthRatio, Measure::kFalseCertain,
    Measure::kDecisionsDiffer, Measure::kMilliseconds};

constexpr double kTitleFont = 13.5;
constexpr double kWidestBaseline = 125.0;

FigureGroup group_of(Measure measure) {
  switch (measure) {
    case Measure::kOfflineNdcg:
    case Measure::kDiscountedNdcg:
    case Measure::kUnfairness:
    case Measure::kFairShare:
    case Measure::kViolations:
    case Measure::kUnrealisable:
      return FigureGroup::kMain;
    case Measure::kCertainShare:
    case Measure::kBlocks:
    case Measure::kBlockSize1:
    case Measure::kBlockSize5:
    case Measure::kBlockSize10:
    case Measure::kWidthRatio:
    case Measure::kFalseCertain:
    case Measure::kDecisionsDiffer:
      return FigureGroup::kCertainty;
    case Measure::kMilliseconds:
      return FigureGroup::kTime;
    default:
      return FigureGroup::kQuality;
  }
}

/// Measures whose differences to the baseline have a figure of their own.
bool shows_differences(Measure measure) {
  return measure == Measure::kOfflineNdcg || measure == Measure::kDiscountedNdcg ||
         measure == Measure::kRegret;
}

bool is_share(Measure measure) {
  if (const auto metric = metric_of(measure)) return metric->is_share();
  return measure == Measure::kOfflineNdcg || measure == Measure::kOnlineNdcg ||
         measure == Measure::kCertainShare || measure == Measure::kFalseCertain ||
         measure == Measure::kDecisionsDiffer || measure == Measure::kFairShare;
}

LinePoint line_point(double x, const MeanInterval& estimate) {
  return {x, estimate.mean, estimate.mean - estimate.half_width, estimate.mean + estimate.half_width,
          estimate.values};
}

void add_points(const MeanCurve& curve, FigureLine& line) {
  for (const RoundEstimate& point : curve)
    line.points.push_back(line_point(static_cast<double>(point.round), point.estimate));
}

/// Thin lines, instead of bands that two or three seeds would make far too wide.
void add_parts(const std::vector<Curve>& units, FigureLine& line) {
  if (units.size() < 2) return;
  for (const Curve& unit : units) {
    line.parts.emplace_back();
    for (const auto& [round, value] : unit) line.parts.back().emplace_back(round, value);
  }
}

/// A figure whose x is a single value shows nothing.
bool spans_rounds(const LineFigure& figure) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const FigureLine& line : figure.lines) {
    for (const LinePoint& point : line.points) {
      low = std::min(low, point.x);
      high = std::max(high, point.x);
    }
  }
  return low < high;
}

const MeanInterval* estimate_at(const MeanCurve& curve, std::int64_t round) {
  for (const RoundEstimate& point : curve) {
    if (point.round == round) return &point.estimate;
  }
  return nullptr;
}

/// Stages in the order of a round; any others follow.
constexpr std::array<const char*, 6> kStages = {"score", "width", "rank", "click", "observe", "train"};

class UserFigures {
 public:
  UserFigures(const Report& report, const DataResults& data, const UserResults& user,
              const FinalTable& table)
      : report_(report), data_(data), user_(user), table_(table), shown_(shown_rankers(user)) {
    subtitle_ = fmt::format("{} user, {}", user.user, short_name(report, data));
    baseline_ = baseline_of(report, user, table);
  }

  std::vector<ReportFigure> all() {
    for (const Measure measure : kLineMeasures) {
      add_lines(measure);
      if (shows_differences(measure)) add_differences(measure);
      if (measure != Measure::kOfflineNdcg) continue;
      for (const NamedMetric& metric : user_.metrics(data_.cutoff)) add_lines(measure_of(metric));
    }
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
    std::size_t units = 0;
    for (const RankerTrials* ranker : shown_) units = std::max(units, most_units(ranker->curve(measure)));
    const bool percentiles = measure == Measure::kWidthRatio;
    figure.bands =
        percentiles || (units >= kFewUnits && !(baseline_ != nullptr && shows_differences(measure)));
    for (const RankerTrials* ranker : shown_) {
      const MeanCurve& curve = ranker->curve(measure);
      if (curve.empty()) continue;
      FigureLine line{name_of(ranker), ranker->ranker, {}};
      add_points(curve, line);
      if (percentiles) spread_by_percentiles(*ranker, line);
      if (!percentiles && units < kFewUnits) add_parts(unit_curves(ranker->trials, measure), line);
      figure.lines.push_back(std::move(line));
    }
    if (!spans_rounds(figure)) return;
    std::string caption = explanation_of(measure, data_.cutoff);
    figure.baseline = baseline(measure);
    if (!figure.baseline.points.empty())
      caption += " Dashed: what random orders of the same documents have on average.";
    if (percentiles) caption += " Bands: 10th to 90th percentile of the pairs.";
    add(slug_of(measure), figure, std::move(caption), group_of(measure));
  }

  void add(const std::string& slug, const LineFigure& figure, std::string caption, FigureGroup group) {
    figures_.push_back({slug, draw_lines(figure), std::move(caption), lines_csv(figure), group});
  }

  std::string short_baseline() const {
    std::vector<std::string> names;
    for (const ReportedRanker& ranker : report_.rankers) names.push_back(ranker.name);
    return distinct_labels(names, kTitleFont, kWidestBaseline)[baseline_->ranker];
  }

  /// Each ranker minus the baseline, on the seeds and folds that both played.
  void add_differences(Measure measure) {
    if (baseline_ == nullptr) return;
    LineFigure figure;
    const std::string& baseline = name_of(baseline_);
    figure.title = fmt::format("{}, minus {}", title_of(measure, data_.cutoff), short_baseline());
    figure.subtitle = subtitle_;
    std::size_t units = 0;
    double last = 0.0;
    for (const RankerTrials* ranker : shown_) {
      if (ranker == baseline_) continue;
      const DifferenceCurves curves = difference_curves(ranker->trials, baseline_->trials, measure);
      if (curves.mean.empty()) continue;
      FigureLine line{name_of(ranker), ranker->ranker, {}};
      add_points(curves.mean, line);
      if (most_units(curves.mean) < kFewUnits) {
        add_parts(curves.units, line);
        for (LinePoint& point : line.points) point.low = point.high = std::nan("");
      }
      units = std::max(units, most_units(curves.mean));
      last = std::max(last, line.points.back().x);
      figure.lines.push_back(std::move(line));
    }
    if (!spans_rounds(figure)) return;
    for (const double x : {figure.lines.front().points.front().x, last})
      figure.baseline.points.push_back({x, 0.0, std::nan(""), std::nan(""), units});
    figure.baseline.name = baseline;
    std::string caption = fmt::format("Paired differences; {} 0 is better than {}.",
                                      measure == Measure::kRegret ? "below" : "above", short_baseline());
    if (units >= kFewUnits)
      caption += " A band that excludes 0 means a significant difference at that round, not corrected.";
    add(slug_of(measure) + "-difference", figure, std::move(caption), group_of(measure));
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
      figure.title = fmt::format("Block size by rank, round {}", short_number(static_cast<double>(round)));
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
      if (!spans_rounds(figure)) continue;
      figure.bands = std::any_of(figure.lines.begin(), figure.lines.end(), [](const FigureLine& line) {
        return line.points.front().trials >= kFewUnits;
      });
      add(fmt::format("block-size-by-rank-{}", round), figure,
          "Number of documents in the block that contains the rank.", FigureGroup::kCertainty);
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
    bool barred = false;
    for (const RankerTrials* ranker : shown_) {
      const auto row = static_cast<std::size_t>(
          std::find(table_.rows.begin(), table_.rows.end(), ranker->ranker) - table_.rows.begin());
      const MeanInterval& height = quality->cells[row].estimate;
      const MeanInterval& cost = time->cells[row].estimate;
      if (std::isnan(height.mean) || std::isnan(cost.mean)) continue;
      const double half = height.units < kFewUnits ? std::nan("") : height.half_width;
      barred = barred || std::isfinite(half);
      figure.points.push_back({name_of(ranker), ranker->ranker, cost.mean, height.mean, height.mean - half,
                               height.mean + half});
    }
    if (figure.points.size() < 2) return;
    figures_.push_back(
        {"quality-against-time", draw_scatter(figure),
         fmt::format("{} after the last round, against the time per round. Up and to the left is better.{}",
                     figure.y_name, barred ? " Vertical lines: 95 % t intervals." : ""),
         scatter_csv(figure), FigureGroup::kTime});
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
                        "Time to rank and learn, mean over finished trials; without evaluation.",
                        bars_csv(figure), FigureGroup::kTime});
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
        if (!is_of_rounds(stage)) continue;
        sums[stage] += 1000.0 * seconds / static_cast<double>(trial->rounds);
        if (std::find(order.begin(), order.end(), stage) == order.end()) order.push_back(stage);
      }
    }
    for (auto& [stage, sum] : sums) sum /= trials;
    return sums;
  }

  const Report& report_;
  const DataResults& data_;
  const UserResults& user_;
  const FinalTable& table_;
  std::vector<const RankerTrials*> shown_;
  const RankerTrials* baseline_ = nullptr;  // null where there is nothing to compare
  std::string subtitle_;
  std::vector<ReportFigure> figures_;
};

}  // namespace

std::vector<ReportFigure> figures_of(const Report& report, const DataResults& data, const UserResults& user,
                                     const FinalTable& table) {
  return UserFigures(report, data, user, table).all();
}

}  // namespace olrank
