#include "report/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "report/markup.h"

namespace olrank {
namespace {

struct LineMeasure {
  Measure measure;
  FigureGroup group;
  bool is_share = false;
  bool has_differences = false;  // a figure of its own for differences from the baseline
  bool is_sum = false;           // on logarithmic axes, where its slope says how it grows
};

constexpr LineMeasure kLineMeasures[] = {
    {Measure::kOfflineNdcg, FigureGroup::kMain, true, true},
    {Measure::kDiscountedNdcg, FigureGroup::kMain, false, true},
    {Measure::kUnfairness, FigureGroup::kMain},
    {Measure::kFairShare, FigureGroup::kMain, true},
    {Measure::kViolations, FigureGroup::kMain},
    {Measure::kUnrealisable, FigureGroup::kMain},
    {Measure::kOnlineNdcg, FigureGroup::kQuality, true},
    {Measure::kCertainShare, FigureGroup::kCertainty, true},
    {Measure::kBlocks, FigureGroup::kCertainty},
    {block_size_at(0), FigureGroup::kCertainty},  // ranks 1, 5 and 10
    {block_size_at(4), FigureGroup::kCertainty},
    {block_size_at(9), FigureGroup::kCertainty},
    {Measure::kRegret, FigureGroup::kQuality, false, true, true},
    {Measure::kExaminedRegret, FigureGroup::kQuality, false, false, true},
    {Measure::kCosine, FigureGroup::kQuality},
    {Measure::kWidthRatio, FigureGroup::kCertainty},
    {Measure::kFalseCertain, FigureGroup::kCertainty, true},
    {Measure::kDecisionsDiffer, FigureGroup::kCertainty, true},
    {Measure::kMilliseconds, FigureGroup::kTime}};

constexpr double kWidestBaseline = 125.0;

void add_points(const MeanCurve& curve, PlotSeries& line) {
  for (const RoundEstimate& point : curve)
    line.points.push_back(plot_point(static_cast<double>(point.round), point.estimate));
}

/// Thin lines, instead of bands that two or three seeds would make far too wide.
void add_parts(const std::vector<Curve>& trials, PlotSeries& line) {
  if (trials.size() < 2) return;
  for (const Curve& trial : trials) {
    line.parts.emplace_back();
    for (const auto& [round, value] : trial) line.parts.back().emplace_back(round, value);
  }
}

/// Removes what logarithmic axes cannot show.
void keep_positive(PlotSeries& line) {
  std::erase_if(line.points, [](const PlotPoint& point) { return !(point.x > 0.0 && point.y > 0.0); });
  for (auto& part : line.parts)
    std::erase_if(part, [](const auto& at) { return !(at.first > 0.0 && at.second > 0.0); });
  for (PlotPoint& point : line.points) {
    if (point.low <= 0.0) point.low = 0.1 * point.y;  // the band ends at the frame
  }
}

const MeanInterval* estimate_at(const MeanCurve& curve, std::int64_t round) {
  for (const RoundEstimate& point : curve) {
    if (point.round == round) return &point.estimate;
  }
  return nullptr;
}

class UserFigures {
 public:
  explicit UserFigures(const UserView& view)
      : view_(view),
        shown_(shown_rankers(view.user)),
        baseline_(baseline_of(view)),
        subtitle_(fmt::format("{} user, {}", view.user.user, short_name(view.report, view.data))) {}

  std::vector<ReportFigure> all() {
    for (const LineMeasure& line : kLineMeasures) {
      add_lines(line);
      if (line.has_differences) add_differences(line);
      if (line.measure != Measure::kOfflineNdcg) continue;
      for (const NamedMetric& metric : view_.user.metrics(view_.data.cutoff))
        add_lines({measure_of(metric), FigureGroup::kQuality, metric.is_share()});
    }
    add_blocks_by_rank();
    add_calibration();
    add_speed_against_quality();
    return std::move(figures_);
  }

 private:
  const std::string& name_of(const RankerTrials* ranker) const {
    return view_.report.rankers[ranker->ranker].name;
  }

  void add_lines(const LineMeasure& of) {
    const Measure measure = of.measure;
    Plot figure;
    figure.title = title_of(measure, view_.data.cutoff);
    figure.subtitle = subtitle_;
    figure.whole_intervals = measure == Measure::kWidthRatio;
    if (of.is_share) figure.highest = 1.0;
    if (measure != Measure::kCosine && !of.is_sum) figure.lowest = 0.0;
    figure.logarithmic_x = figure.logarithmic_y = of.is_sum;
    std::size_t trials = 0;
    for (const RankerTrials* ranker : shown_)
      trials = std::max(trials, most_trials(ranker->curve(measure)));
    const bool percentiles = measure == Measure::kWidthRatio;
    figure.bands = percentiles || (trials >= kFewUnits && !(baseline_ != nullptr && of.has_differences));
    for (const RankerTrials* ranker : shown_) {
      const MeanCurve& curve = ranker->curve(measure);
      if (curve.empty()) continue;
      PlotSeries line{name_of(ranker), ranker->ranker, {}};
      add_points(curve, line);
      if (percentiles) spread_by_percentiles(*ranker, line);
      if (!percentiles && trials < kFewUnits) add_parts(trial_curves(ranker->trials, measure), line);
      if (of.is_sum) keep_positive(line);
      if (!line.points.empty()) figure.series.push_back(std::move(line));
    }
    if (!spans_x(figure)) return;
    std::string caption = explanation_of(measure, view_.data.cutoff);
    figure.baseline = baseline(measure);
    if (of.is_sum) {
      keep_positive(figure.baseline);
      caption += " On these axes a sum that grows with the rounds has slope 1.";
    }
    if (!figure.baseline.points.empty())
      caption += " Dashed: what random orders of the same documents have on average.";
    if (percentiles) caption += " Bands: 10th to 90th percentile of the pairs.";
    add(slug_of(measure), figure, std::move(caption), of.group);
  }

  void add(const std::string& slug, const Plot& figure, std::string caption, FigureGroup group) {
    figures_.push_back(figure_of(slug, figure, std::move(caption), group));
  }

  std::string short_baseline() const {
    std::vector<std::string> names;
    for (const ReportedRanker& ranker : view_.report.rankers) names.push_back(ranker.name);
    return distinct_labels(names, kTitleFont, kWidestBaseline)[baseline_->ranker];
  }

  /// Each ranker minus the baseline, on the seeds and folds that both played.
  void add_differences(const LineMeasure& of) {
    const Measure measure = of.measure;
    if (baseline_ == nullptr) return;
    Plot figure;
    const std::string& baseline = name_of(baseline_);
    figure.title = fmt::format("{}, minus {}", title_of(measure, view_.data.cutoff), short_baseline());
    figure.subtitle = subtitle_;
    std::size_t trials = 0;
    double last = 0.0;
    for (const RankerTrials* ranker : shown_) {
      if (ranker == baseline_) continue;
      const DifferenceCurves curves = difference_curves(ranker->trials, baseline_->trials, measure);
      if (curves.mean.empty()) continue;
      PlotSeries line{name_of(ranker), ranker->ranker, {}};
      add_points(curves.mean, line);
      if (most_trials(curves.mean) < kFewUnits) {
        add_parts(curves.trials, line);
        for (PlotPoint& point : line.points) point.low = point.high = std::nan("");
      }
      trials = std::max(trials, most_trials(curves.mean));
      last = std::max(last, line.points.back().x);
      figure.series.push_back(std::move(line));
    }
    if (!spans_x(figure)) return;
    for (const double x : {figure.series.front().points.front().x, last})
      figure.baseline.points.push_back({.x = x, .trials = trials});
    figure.baseline.name = baseline;
    std::string caption = fmt::format("Paired differences; {} 0 is better than {}.",
                                      measure == Measure::kRegret ? "below" : "above", short_baseline());
    if (trials >= kFewUnits)
      caption +=
          " A band that excludes 0 means a significant difference of these trials at that round, not "
          "corrected.";
    add(slug_of(measure) + "-difference", figure, std::move(caption), of.group);
  }

  /// Rankers share their queries, so the curve that reaches furthest stands for all.
  PlotSeries baseline(Measure measure) const {
    PlotSeries line{"random", 0, {}};
    const std::optional<Measure> random = random_baseline(measure);
    if (!random) return line;
    const MeanCurve* longest = nullptr;
    for (const RankerTrials* ranker : shown_) {
      const MeanCurve& curve = ranker->curve(*random);
      if (longest == nullptr || curve.size() > longest->size()) longest = &curve;
    }
    if (longest == nullptr) return line;
    add_points(*longest, line);
    for (PlotPoint& point : line.points) point.low = point.high = std::nan("");
    return line;
  }

  static void spread_by_percentiles(const RankerTrials& ranker, PlotSeries& line) {
    const MeanCurve& low = ranker.curve(Measure::kWidthRatioLow);
    const MeanCurve& high = ranker.curve(Measure::kWidthRatioHigh);
    for (PlotPoint& point : line.points) {
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
      for (const RoundEstimate& point : ranker->curve(Measure::kBlockSize)) rounds.push_back(point.round);
    }
    std::sort(rounds.begin(), rounds.end());
    rounds.erase(std::unique(rounds.begin(), rounds.end()), rounds.end());
    if (rounds.size() <= 3) return rounds;
    return {rounds.front(), rounds[(rounds.size() - 1) / 2], rounds.back()};
  }

  void add_blocks_by_rank() {
    for (const std::int64_t round : sample_rounds()) {
      Plot figure;
      figure.title = fmt::format("Block size by rank, round {}", short_number(static_cast<double>(round)));
      figure.subtitle = subtitle_;
      figure.x_name = "rank";
      figure.lowest = 0.0;
      for (const RankerTrials* ranker : shown_) {
        PlotSeries line{name_of(ranker), ranker->ranker, {}};
        for (std::size_t place = 0; place < ListCertainty::kBlockRanks.size(); ++place) {
          const MeanInterval* estimate = estimate_at(ranker->curve(block_size_at(place)), round);
          if (estimate == nullptr) continue;
          const auto rank = static_cast<double>(ListCertainty::kBlockRanks[place]);
          line.points.push_back(plot_point(rank, *estimate));
        }
        if (!line.points.empty()) figure.series.push_back(std::move(line));
      }
      if (!spans_x(figure)) continue;
      figure.bands = std::any_of(figure.series.begin(), figure.series.end(), [](const PlotSeries& line) {
        return line.points.front().trials >= kFewUnits;
      });
      add(fmt::format("block-size-by-rank-{}", round), figure,
          "Number of documents in the block that contains the rank.", FigureGroup::kCertainty);
    }
  }

  void add_calibration() {
    Plot figure;
    figure.title = "Stated against true probability";
    figure.subtitle = subtitle_;
    figure.x_name = "stated probability of an order";
    figure.bands = false;
    figure.highest = 1.0;
    for (const RankerTrials* ranker : shown_) {
      PlotSeries line{name_of(ranker), ranker->ranker, {}};
      for (const StatedClass& stated : stated_by(*ranker)) {
        constexpr double kFewest = 50.0;  // fewer orders say little
        if (stated.of < kFewest) continue;
        line.points.push_back(
            {.x = stated.from, .y = 1.0 - stated.wrong / stated.of, .trials = ranker->trials.size()});
      }
      if (!line.points.empty()) figure.series.push_back(std::move(line));
    }
    if (!spans_x(figure)) return;
    figure.baseline.name = "as stated";
    for (const double x : {0.5, 1.0}) figure.baseline.points.push_back({.x = x, .y = x});
    add("calibration", figure,
        "Share of shown orders, of documents with different grades, that were right, by the middle of each "
        "class of the probability that the ranker stated. Above the dashed line a ranker is more careful "
        "than it has to be.",
        FigureGroup::kCertainty);
  }

  /// Over all trials, each class at its middle.
  static std::vector<StatedClass> stated_by(const RankerTrials& ranker) {
    std::vector<StatedClass> sums;
    for (const TrialResults* trial : ranker.trials) {
      for (const CurveEvaluation& point : trial->curve.points) {
        sums.resize(std::max(sums.size(), point.stated.size()));
        for (std::size_t at = 0; at < point.stated.size(); ++at) {
          sums[at].from = point.stated[at].from;
          sums[at].wrong += point.stated[at].wrong;
          sums[at].of += point.stated[at].of;
        }
      }
    }
    for (std::size_t at = 0; at < sums.size(); ++at)
      sums[at].from = 0.5 * (sums[at].from + (at + 1 < sums.size() ? sums[at + 1].from : 1.0));
    return sums;
  }

  void add_speed_against_quality() {
    const FinalColumn* quality = view_.table.column(Measure::kOfflineNdcg);
    const FinalColumn* time = view_.table.column(Measure::kMilliseconds);
    if (quality == nullptr || time == nullptr) return;
    Plot figure;
    figure.kind = PlotKind::kScatter;
    figure.title = "Quality against time";
    figure.subtitle = subtitle_;
    figure.x_name = "milliseconds per round";
    figure.y_name = title_of(Measure::kOfflineNdcg, view_.data.cutoff);
    bool barred = false;
    for (const RankerTrials* ranker : shown_) {
      const auto row = static_cast<std::size_t>(
          std::find(view_.table.rows.begin(), view_.table.rows.end(), ranker->ranker) -
          view_.table.rows.begin());
      const MeanInterval& height = quality->cells[row].estimate;
      const MeanInterval& cost = time->cells[row].estimate;
      if (std::isnan(height.mean) || std::isnan(cost.mean)) continue;
      PlotPoint point = plot_point(cost.mean, height);
      if (height.values < kFewUnits) point.low = point.high = std::nan("");
      barred = barred || std::isfinite(point.low);
      figure.series.push_back({name_of(ranker), ranker->ranker, {point}});
    }
    if (figure.series.size() < 2) return;
    add("quality-against-time", figure,
        fmt::format("{} after the last round, against the time per round. Up and to the left is better.{}",
                    figure.y_name, barred ? " Vertical lines: 95 % t intervals." : ""),
        FigureGroup::kTime);
  }

  const UserView& view_;
  std::vector<const RankerTrials*> shown_;
  const RankerTrials* baseline_;  // null where there is nothing to compare
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

const RankerTrials* baseline_of(const UserView& view) {
  const std::optional<std::size_t> row = baseline_row(view.report, view.table);
  for (const RankerTrials& ranker : view.user.rankers) {
    if (row && view.user.rankers.size() > 1 && ranker.ranker == view.table.rows[*row]) return &ranker;
  }
  return nullptr;
}

std::vector<ReportFigure> figures_of(const UserView& view) {
  return UserFigures(view).all();
}

}  // namespace olrank
