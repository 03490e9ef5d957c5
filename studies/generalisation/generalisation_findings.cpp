#include "studies/generalisation/generalisation_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "studies/generalisation/study_losses.h"

namespace olrank {
namespace {

using Rows = std::vector<StudiedRow>;
using Wanted = std::function<bool(const StudiedRow&)>;

Rows rows_where(const Rows& rows, const Wanted& wanted) {
  Rows chosen;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen), wanted);
  return chosen;
}

Rows rows_at(const Rows& rows, const std::string& name, double value) {
  return rows_where(rows, [&](const StudiedRow& one) { return one.row.value(name) == value; });
}

Rows rows_from(const Rows& rows, const std::string& name, double least) {
  return rows_where(rows, [&](const StudiedRow& one) { return one.row.value(name) >= least; });
}

Rows rows_with(const Rows& rows, char experiment,
               const std::vector<std::pair<std::string, std::string>>& labels) {
  return rows_where(rows, [&](const StudiedRow& one) {
    return one.experiment == experiment &&
           std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
             const auto found = one.row.labels.find(wanted.first);
             return found != one.row.labels.end() && found->second == wanted.second;
           });
  });
}

std::set<std::string> labels_of(const Rows& rows, char experiment, const std::string& name) {
  std::set<std::string> texts;
  for (const StudiedRow& one : rows) {
    const auto found = one.row.labels.find(name);
    if (one.experiment == experiment && found != one.row.labels.end()) texts.insert(found->second);
  }
  return texts;
}

std::set<double> values_of(const Rows& rows, const std::string& name) {
  std::set<double> values;
  for (const StudiedRow& one : rows) values.insert(one.row.value(name));
  return values;
}

/// The value in the middle of those that occur.
double middle_value(const Rows& rows, const std::string& name) {
  const std::set<double> values = values_of(rows, name);
  return *std::next(values.begin(), static_cast<std::ptrdiff_t>(values.size() / 2));
}

/// The mean of y by x, over seeds, with its t interval.
PlotSeries line_over(const Rows& rows, const std::string& name, std::size_t style, const std::string& x,
                     const std::string& y) {
  std::map<double, std::vector<double>> by_x;
  for (const StudiedRow& one : rows) by_x[one.row.value(x)].push_back(one.row.value(y));
  PlotSeries line{name, style, {}, {}};
  for (const auto& [at, values] : by_x) {
    const MeanInterval interval = mean_interval({values});
    if (!(interval.mean > 0.0)) continue;
    // A band below 0 has no place on a logarithmic axis.
    const double low = std::max(interval.mean - interval.half_width, 0.1 * interval.mean);
    line.points.push_back({at, interval.mean, std::isfinite(interval.half_width) ? low : std::nan(""),
                           interval.mean + interval.half_width, values.size()});
  }
  return line;
}

/// A figure of each seed, or of each fold.
using ByNumber = std::map<std::int64_t, double>;

ByNumber slopes_by_seed(const Rows& rows, const std::string& y, const std::string& x) {
  std::map<std::int64_t, Rows> by_seed;
  for (const StudiedRow& one : rows) by_seed[one.seed].push_back(one);
  ByNumber slopes;
  for (const auto& [seed, own] : by_seed) slopes[seed] = log_slopes(own, y, {x})[0].mean;
  return slopes;
}

/// The mean of a − b over the numbers that both have.
MeanInterval difference_of(const ByNumber& a, const ByNumber& b) {
  std::vector<double> differences;
  for (const auto& [number, value] : a)
    if (const auto other = b.find(number); other != b.end()) differences.push_back(value - other->second);
  return mean_interval({differences});
}

Plot log_figure(const std::string& title, const std::string& subtitle, const std::string& x_name) {
  Plot figure;
  figure.title = title;
  figure.subtitle = subtitle;
  figure.x_name = x_name;
  figure.logarithmic_x = true;
  figure.logarithmic_y = true;
  return figure;
}

struct LossExponent {
  const char* loss;
  double over_m;  // the largest exponent of m that its bound allows
};
constexpr LossExponent kLossExponents[] = {{"listnet", 0.0}, {"smooth-dcg", 0.0},   {"smooth-dcg-10", 0.0},
                                           {"ranksvm", 2.0}, {"ranksvm-mean", 0.0}, {"listmle", 1.0}};

/// The lengths from which on effects of few documents have faded.
constexpr double kLongList = 50.0;
/// The numbers of queries from which on the penalties and steps of C no longer hide everything else.
constexpr double kManyQueries = 1000.0;

class FindingsOf {
 public:
  explicit FindingsOf(const Rows& rows) : rows_(rows) {}

  GeneralisationFindings find() {
    lengths();
    real_lists();
    slopes();
    excess();
    balls();
    optimistic();
    rankings();
    return std::move(found_);
  }

 private:
  void claim(char experiment, std::string subject, std::string quantity, const MeanInterval& estimate,
             std::optional<double> at_most, bool is_difference = false) {
    if (!std::isfinite(estimate.mean)) return;
    found_.claims.push_back(
        {experiment, std::move(subject), std::move(quantity), estimate, at_most, is_difference});
  }

  void figure(char experiment, std::string name, Plot figure) {
    std::erase_if(figure.series, [](const PlotSeries& line) { return line.points.empty(); });
    if (figure.series.empty()) return;
    found_.figures.push_back({std::move(name), experiment, std::move(figure)});
  }

  /// The largest mean of y over its bound, over all settings.
  MeanInterval largest_share(const Rows& rows, const std::string& y,
                             const std::string& bound = "bound") const {
    std::map<std::pair<double, double>, std::vector<double>> by_setting;
    for (const StudiedRow& one : rows) {
      const auto m = one.row.values.find("m");
      by_setting[{m == one.row.values.end() ? 0.0 : m->second, one.row.value("n")}].push_back(
          one.row.value(y) / one.row.value(bound));
    }
    MeanInterval largest;
    largest.mean = std::nan("");
    for (const auto& [setting, shares] : by_setting) {
      const MeanInterval share = mean_interval({shares});
      if (!(share.mean <= largest.mean)) largest = share;
    }
    return largest;
  }

  /// The largest y of each seed.
  static MeanInterval largest_of(const Rows& rows, const std::string& y) {
    std::map<std::int64_t, double> by_seed;
    for (const StudiedRow& one : rows) by_seed[one.seed] = std::max(by_seed[one.seed], one.row.value(y));
    std::vector<double> largest;
    largest.reserve(by_seed.size());
    for (const auto& [seed, value] : by_seed) largest.push_back(value);
    return mean_interval({largest});
  }

  /// Both estimate the same expectation: their sums over all settings, by seed.
  static MeanInterval plain_share(const Rows& rows) {
    std::map<std::int64_t, std::pair<double, double>> sums;
    for (const StudiedRow& one : rows) {
      // As shares of the bound, so that no length outweighs the others.
      sums[one.seed].first += one.row.value("plain_gap") / one.row.value("bound");
      sums[one.seed].second += one.row.value("gap") / one.row.value("bound");
    }
    std::vector<double> shares;
    shares.reserve(sums.size());
    for (const auto& [seed, sum] : sums) shares.push_back(sum.first / sum.second);
    return mean_interval({shares});
  }

  void lengths() {
    for (const std::string noise : {"query", "document"}) {
      const Rows all = rows_with(rows_, 'A', {{"noise", noise}});
      if (all.empty()) continue;
      const std::string of = fmt::format(", noise by {}", noise);
      Plot over_m = log_figure("Gap by list length", "", "documents of a query, m");
      Plot over_n = log_figure("Gap by number of queries", "", "queries, n");
      const double n = middle_value(all, "n");
      const double m = middle_value(all, "m");
      over_m.subtitle = fmt::format("n = {:.0f}, noise by {}", n, noise);
      over_n.subtitle = fmt::format("m = {:.0f}, noise by {}", m, noise);
      std::size_t style = 0;
      for (const LossExponent& loss : kLossExponents) {
        const Rows of_loss = rows_with(all, 'A', {{"loss", loss.loss}});
        const auto say = [&](const std::string& quantity, const MeanInterval& estimate,
                             std::optional<double> at_most, bool is_difference = false) {
          claim('A', loss.loss + of, quantity, estimate, at_most, is_difference);
        };
        const auto slopes = log_slopes(of_loss, "gap", {"m", "n"});
        say("b: slope over m", slopes[0], loss.over_m);
        say(fmt::format("b from m = {:.0f} on", kLongList),
            log_slopes(rows_from(of_loss, "m", kLongList), "gap", {"m", "n"})[0], loss.over_m);
        say("c: slope over n", slopes[1], -0.5);
        say("largest share of G W R √(2/n)", largest_share(of_loss, "gap"), 1.0, true);
        // The theorem covers convex losses alone.
        say("largest share of 2 G W R (8/n + √(2/n)), Theorem 6",
            largest_share(of_loss, "gap", "regularised_bound"),
            is_convex(study_loss(loss.loss, 1).form.loss) ? std::optional(1.0) : std::nullopt, true);
        say("largest share of twice Corollary 8", largest_share(of_loss, "gap", "uniform_bound"), 1.0,
            true);
        say("largest ‖w‖ ÷ W", largest_of(of_loss, "radius_share"), {});
        say("gap by held-out queries ÷ gap by twins", plain_share(of_loss), {});
        over_m.series.push_back(line_over(rows_at(of_loss, "n", n), loss.loss, style, "m", "gap"));
        over_n.series.push_back(line_over(rows_at(of_loss, "m", m), loss.loss, style, "n", "gap"));
        ++style;
      }
      const Rows list_net = rows_with(all, 'A', {{"loss", "listnet"}});
      const Rows at_n = rows_at(list_net, "n", n);
      const Rows at_m = rows_at(list_net, "m", m);
      over_m.series.push_back(line_over(at_n, "3G₂WR√(m/n)", style, "m", "length_bound"));
      over_m.series.push_back(line_over(at_n, "Theorem 6", style + 1, "m", "regularised_bound"));
      over_m.baseline = line_over(at_n, "G W R √(2/n)", 0, "m", "bound");
      over_n.series.push_back(line_over(at_m, "Theorem 6", style, "n", "regularised_bound"));
      over_n.baseline = line_over(at_m, "G W R √(2/n)", 0, "n", "bound");
      figure('A', "gap-by-length-" + noise, std::move(over_m));
      figure('A', "gap-by-queries-" + noise, std::move(over_n));
    }
  }

  void real_lists() {
    for (const std::string& data : labels_of(rows_, 'A', "data")) {
      Plot over_m = log_figure("Gap by list length, " + data, "", "documents drawn from a query, m");
      std::size_t style = 0;
      for (const LossExponent& loss : kLossExponents) {
        const Rows of_loss = rows_with(rows_, 'A', {{"data", data}, {"loss", loss.loss}});
        claim('A', fmt::format("{}, {}", loss.loss, data), "b: slope over m",
              log_slopes(of_loss, "gap", {"m"})[0], loss.over_m);
        over_m.series.push_back(line_over(of_loss, loss.loss, style++, "m", "gap"));
      }
      const Rows list_net = rows_with(rows_, 'A', {{"data", data}, {"loss", "listnet"}});
      over_m.subtitle = fmt::format("n = {:.0f}", middle_value(list_net, "n"));
      over_m.baseline = line_over(list_net, "G W R √(2/n)", 0, "m", "bound");
      figure('A', "gap-by-length-" + data, std::move(over_m));
    }
  }

  void slopes() {
    Plot sup = log_figure("Largest slope of a query", "‖∇ₛφ‖₁ along training", "documents of a query, m");
    std::size_t style = 0;
    for (const LossExponent& loss : kLossExponents) {
      const Rows of_loss = rows_with(rows_, 'B', {{"loss", loss.loss}});
      if (of_loss.empty()) continue;
      const auto slope = [](const Rows& rows, const char* y) { return log_slopes(rows, y, {"m"})[0]; };
      claim('B', loss.loss, "largest ‖∇ₛφ‖₁: slope over m", slope(of_loss, "sup_l1"), loss.over_m);
      claim('B', loss.loss, "mean ‖∇ₛφ‖₁: slope over m", slope(of_loss, "mean_l1"), loss.over_m);
      claim('B', loss.loss, fmt::format("mean ‖∇ₛφ‖₁ from m = {:.0f} on", kLongList),
            slope(rows_from(of_loss, "m", kLongList), "mean_l1"), loss.over_m);
      claim('B', loss.loss, "largest ‖∇ₛφ‖₂: slope over m", slope(of_loss, "sup_l2"), {});
      claim('B', loss.loss, "mean ‖∇ₛφ‖₂: slope over m", slope(of_loss, "mean_l2"), {});
      sup.series.push_back(line_over(of_loss, loss.loss, style++, "m", "sup_l1"));
    }
    figure('B', "slopes-by-length", std::move(sup));
  }

  void excess() {
    for (const std::string& loss : labels_of(rows_, 'C', "loss")) {
      Plot over_n = log_figure("Excess risk by number of queries", loss, "queries, n");
      std::size_t style = 0;
      for (const char* algorithm : {"ogd-average", "ogd-last", "rerm", "erm"}) {
        const Rows of = rows_with(rows_, 'C', {{"loss", loss}, {"algorithm", algorithm}});
        const std::string subject = fmt::format("{}, {}", algorithm, loss);
        claim('C', subject, "slope over n", log_slopes(of, "excess", {"n"})[0], -0.5);
        claim('C', subject, fmt::format("slope from n = {:.0f} on", kManyQueries),
              log_slopes(rows_from(of, "n", kManyQueries), "excess", {"n"})[0], -0.5);
        if (std::string_view(algorithm) == "ogd-average")
          claim('C', subject, "largest share of G W R √(2/n)", largest_share(of, "excess"), 1.0, true);
        if (std::string_view(algorithm) == "rerm")
          claim('C', subject, "largest share of 2 G W R (8/n + √(2/n)), Theorem 6",
                largest_share(of, "excess", "regularised_bound"), 1.0, true);
        over_n.series.push_back(line_over(of, algorithm, style++, "n", "excess"));
      }
      over_n.baseline = line_over(rows_with(rows_, 'C', {{"loss", loss}, {"algorithm", "ogd-average"}}),
                                  "G W R √(2/n)", 0, "n", "bound");
      figure('C', "excess-" + loss, std::move(over_n));
    }
  }

  void balls() {
    Plot over_d = log_figure("Gap by number of features", "", "features, d");
    std::map<std::string, ByNumber> slopes;
    std::size_t style = 0;
    for (const char* norm : {"l1", "l2"}) {
      Rows of = rows_with(rows_, 'D', {{"norm", norm}});
      if (of.empty()) return;
      for (StudiedRow& one : of) one.row.values["log d"] = std::log(one.row.value("d"));
      const bool is_l1 = std::string_view(norm) == "l1";
      claim('D', fmt::format("ball of {}", norm), is_l1 ? "slope over log d" : "slope over d",
            log_slopes(of, "gap", {is_l1 ? "log d" : "d"})[0], 0.5);
      slopes[norm] = slopes_by_seed(of, "gap", "d");
      over_d.series.push_back(line_over(of, norm, style++, "d", "gap"));
    }
    claim('D', "ball of l1 minus ball of l2", "slope over d", difference_of(slopes["l1"], slopes["l2"]),
          0.0, true);
    over_d.subtitle = fmt::format("listnet, n = {:.0f}", middle_value(rows_with(rows_, 'D', {}), "n"));
    figure('D', "gap-by-features", std::move(over_d));
  }

  void optimistic() {
    Plot over_n = log_figure("Excess risk with and without noise", "listnet, smooth step", "queries, n");
    std::map<double, ByNumber> slopes;
    std::size_t style = 0;
    for (const double noise : values_of(rows_with(rows_, 'E', {}), "noise")) {
      for (const char* algorithm : {"ogd-average", "ogd-last", "erm"}) {
        const Rows of = rows_at(rows_with(rows_, 'E', {{"algorithm", algorithm}}), "noise", noise);
        const std::string name = fmt::format("{}, noise {:.1f}", algorithm, noise);
        const bool average = std::string_view(algorithm) == "ogd-average";
        // Without noise a fit over the ball is exact from some n on, and its excess is rounding.
        if (average || noise > 0.0)
          claim('E', name, "slope over n", log_slopes(of, "excess", {"n"})[0], noise > 0.0 ? -0.5 : -1.0);
        if (average) {
          claim('E', name, "largest share of the bound", largest_share(of, "excess"), 1.0, true);
          slopes[noise] = slopes_by_seed(of, "excess", "n");
        }
        if (average || (noise > 0.0 && std::string_view(algorithm) == "erm"))
          over_n.series.push_back(line_over(of, name, style++, "n", "excess"));
      }
    }
    if (slopes.size() == 2)
      claim('E', "noise 0 minus noise 0.3, ogd-average", "slope over n",
            difference_of(slopes.begin()->second, slopes.rbegin()->second), 0.0, true);
    figure('E', "optimistic", std::move(over_n));
  }

  void rankings() {
    for (const std::string& data : labels_of(rows_, 'F', "data")) {
      std::map<std::string, ByNumber> by_loss;
      for (const StudiedRow& one : rows_with(rows_, 'F', {{"data", data}}))
        by_loss[one.row.label("loss")][std::llround(one.row.value("fold"))] = one.row.value("ndcg");
      for (const auto& [loss, by_fold] : by_loss) {
        std::vector<double> values;
        for (const auto& [fold, ndcg] : by_fold) values.push_back(ndcg);
        claim('F', fmt::format("{}, {}", loss, data), "NDCG@10", mean_interval({values}), {});
      }
      for (const char* other : {"ranksvm-mean", "ranknet-mean"})
        claim('F', fmt::format("{} minus listnet, {}", other, data), "NDCG@10",
              difference_of(by_loss[other], by_loss["listnet"]), 0.0, true);
    }
  }

  const Rows& rows_;
  GeneralisationFindings found_;
};

}  // namespace

std::string TheoryClaim::verdict() const {
  if (!at_most) return "–";
  const double half = std::isfinite(estimate.half_width) ? estimate.half_width : 0.0;
  const double margin = is_difference ? 0.0 : kSlopeMargin;
  if (estimate.mean - half > *at_most + margin) return "above";
  if (estimate.mean + half > *at_most + margin) return "open";
  return !is_difference && std::abs(estimate.mean - *at_most) <= kSlopeReached ? "holds, reached" : "holds";
}

std::vector<MeanInterval> log_slopes(const std::vector<StudiedRow>& rows, const std::string& y,
                                     const std::vector<std::string>& x) {
  struct Seed {
    std::vector<double> y;
    std::vector<std::vector<double>> x;
  };
  std::map<std::int64_t, Seed> by_seed;
  for (const StudiedRow& one : rows) {
    Seed& seed = by_seed[one.seed];
    seed.x.resize(x.size());
    if (!(one.row.value(y) > 0.0)) continue;
    seed.y.push_back(std::log(one.row.value(y)));
    for (std::size_t k = 0; k < x.size(); ++k) seed.x[k].push_back(std::log(one.row.value(x[k])));
  }
  FoldedValues slopes(x.size());
  for (const auto& [number, seed] : by_seed) {
    const std::vector<double> fitted = fit_least_squares(seed.y, seed.x);
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (std::isfinite(fitted[k + 1])) slopes[k].push_back(fitted[k + 1]);
    }
  }
  std::vector<MeanInterval> intervals;
  for (const auto& of_x : slopes) intervals.push_back(mean_interval({of_x}));
  return intervals;
}

GeneralisationFindings find_generalisation(const std::vector<StudiedRow>& rows) {
  return FindingsOf(rows).find();
}

}  // namespace olrank
