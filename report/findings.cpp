#include "report/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/statistics/t_tests.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "report/markup.h"
#include "report/study.h"

namespace olrank {
namespace {

/// More seeds than this are not advised; differences that need them are called small instead.
constexpr std::size_t kMostAdvised = 100;
/// Sentences name at most this many rankers and count the others.
constexpr std::size_t kMostNamed = 3;

struct Contest : Standings {
  std::string place;    // "offline" or "online"
  std::string measure;  // "NDCG@10"
};

/// "a, b, c and 4 others".
std::string some_of(std::vector<std::string> names) {
  if (names.size() > kMostNamed + 1) {
    const std::size_t others = names.size() - kMostNamed;
    names.resize(kMostNamed);
    names.push_back(counted(others, "other"));
  }
  return joined(names);
}

/// The spread of differences for plans from two or three values: the root mean square over pairs of
/// considered rankers, which is steadier than that of one pair, at its upper limit.
double pooled_deviation(const Standings& ranking) {
  double squares = 0.0;
  double pairs = 0.0;
  for (const PairedComparison& pair : ranking.column->pairs) {
    const double deviation = pair.deviation();
    if (!ranking.considered[pair.a] || !ranking.considered[pair.b] || !std::isfinite(deviation)) continue;
    squares += deviation * deviation;
    ++pairs;
  }
  const auto rankers = static_cast<double>(ranking.rivals.size());
  return planning_deviation(std::sqrt(squares / pairs), rankers * static_cast<double>(ranking.units - 1));
}

double strictest_level(const FinalColumn& column) {
  return kSignificance / static_cast<double>(std::max<std::size_t>(1, column.pairs.size()));
}

/// How differences in several folds scatter, by the method of moments: fold means scatter by
/// folds + seeds / (seeds per fold).
struct SpreadOfFolds {
  double folds = 0.0;  // variance between folds
  double seeds = 0.0;  // variance of seeds within a fold; NaN with a single seed in each
};

SpreadOfFolds spread_of(const FoldedValues& differences) {
  double squares = 0.0;
  double freedom = 0.0;
  double shares = 0.0;
  for (const std::vector<double>& fold : differences) {
    shares += 1.0 / static_cast<double>(fold.size());
    if (fold.size() < 2) continue;
    const auto others = static_cast<double>(fold.size() - 1);
    squares += deviation_of(fold) * deviation_of(fold) * others;
    freedom += others;
  }
  SpreadOfFolds spread;
  spread.seeds = freedom > 0.0 ? squares / freedom : std::nan("");
  const double between = deviation_of(independent_values(differences));
  spread.folds =
      std::max(0.0, between * between - spread.seeds * shares / static_cast<double>(differences.size()));
  return spread;
}

class Writer {
 public:
  explicit Writer(const UserView& view) : view_(view) {}

  Findings write() const {
    const Contest offline = contest(Measure::kOfflineNdcg, "offline", "NDCG");
    const Contest online = contest(Measure::kDiscountedNdcg, "online", "discounted NDCG");
    if (offline.column == nullptr && online.column == nullptr) return {"No trial has finished yet.", {}};
    Findings findings{headline(offline, online), {}};
    for (const Contest* ranking : {&offline, &online}) {
      if (ranking->column != nullptr) findings.sentences.push_back(sentence(*ranking));
    }
    const std::string advice = what_would_tell(offline, online);
    if (!advice.empty()) findings.sentences.push_back(advice);
    return findings;
  }

 private:
  const std::string& name(std::size_t row) const {
    return view_.report.rankers[view_.table.rows[row]].name;
  }

  Contest contest(Measure measure, const std::string& place, const std::string& word) const {
    return {ranking_of(view_.table, measure), place, fmt::format("{}@{}", word, view_.data.cutoff)};
  }

  std::vector<std::string> names(const std::vector<Rival>& rivals) const {
    std::vector<std::string> found;
    found.reserve(rivals.size());
    for (const Rival& rival : rivals) found.push_back(name(rival.row));
    return found;
  }

  /// "a is best offline".
  std::string verdict(const Contest& ranking, const std::string& place) const {
    if (ranking.tied.empty()) return fmt::format("{} is best {}", name(ranking.best), place);
    if (!ranking.separates)
      return fmt::format("{} separate no rankers {}", counted(ranking.units, ranking.unit), place);
    if (ranking.worse.empty())
      return fmt::format("{} leads {}, but not significantly", name(ranking.best), place);
    std::vector<std::size_t> leaders = {ranking.best};
    for (const Rival& rival : ranking.tied) leaders.push_back(rival.row);
    std::sort(leaders.begin(), leaders.end());
    std::vector<std::string> named;
    named.reserve(leaders.size());
    for (const std::size_t row : leaders) named.push_back(name(row));
    return fmt::format("{} share the lead {}", some_of(std::move(named)), place);
  }

  std::string headline(const Contest& offline, const Contest& online) const {
    const Contest& any = offline.column != nullptr ? offline : online;
    if (any.rivals.empty()) return fmt::format("{} is the only ranker with results.", name(any.best));
    if (!offline.tested && !online.tested) {
      return any.units < 2 ? fmt::format("One {} cannot tell rankers apart.", any.unit)
                           : "The rankers share too few finished trials to compare them.";
    }
    if (offline.column == nullptr || online.column == nullptr) return verdict(any, any.place) + ".";
    for (const std::string both : {"offline and online", "offline or online"}) {
      const bool none = both == "offline or online";
      if (none == !offline.separates && verdict(offline, both) == verdict(online, both))
        return verdict(offline, both) + ".";
    }
    return fmt::format("{}; {}.", verdict(offline, offline.place), verdict(online, online.place));
  }

  /// "b (0.0043 ± 0.0101 lower)".
  std::string with_difference(const Rival& rival, int digits) const {
    if (rival.pair == nullptr) return fmt::format("{} (no common trials)", name(rival.row));
    std::string text = fmt::format("{} ({}", name(rival.row), fixed_number(std::abs(rival.behind), digits));
    if (std::isfinite(rival.half_width())) text += " ± " + fixed_number(rival.half_width(), digits);
    return text + (rival.behind < 0.0 ? " higher)" : " lower)");
  }

  std::string sentence(const Contest& ranking) const {
    const int digits = ranking.column->measure.digits;
    const MeanInterval& best = ranking.column->cells[ranking.best].estimate;
    const std::string place = ranking.place == "offline" ? "Offline" : "Online";
    std::string text;
    if (ranking.rivals.empty()) {
      text = fmt::format("{}, {} has {} {}.", place, name(ranking.best), ranking.measure,
                         estimate_text(best, digits));
    } else if (!ranking.tested) {
      const Rival& next = ranking.rivals.front();
      text = fmt::format("{}, {} has the highest {}, {}; the next is {} with {}.", place,
                         name(ranking.best), ranking.measure, estimate_text(best, digits), name(next.row),
                         estimate_text(ranking.column->cells[next.row].estimate, digits));
    } else if (ranking.tied.empty()) {
      text = clear_sentence(ranking, place);
    } else {
      text = tied_sentence(ranking, place);
    }
    return text + beside(ranking);
  }

  std::string clear_sentence(const Contest& ranking, const std::string& place) const {
    const int digits = ranking.column->measure.digits;
    const Rival& next = ranking.worse.front();
    std::string text = fmt::format(
        "{}, {} is best: {} {}, which is {} ± {} above {}", place, name(ranking.best), ranking.measure,
        estimate_text(ranking.column->cells[ranking.best].estimate, digits),
        fixed_number(next.behind, digits), fixed_number(next.half_width(), digits), name(next.row));
    // Means are over all finished trials, differences over those that both finished.
    if (const std::size_t common = next.pair->test.difference.units;
        common < ranking.column->cells[ranking.best].estimate.units ||
        common < ranking.column->cells[next.row].estimate.units)
      text += fmt::format(" on {} that both finished", counted(common, ranking.unit));
    if (ranking.worse.size() == 1) return text + ".";
    return text +
           fmt::format(", the next; {} others are significantly worse.",
                       ranking.worse.size() == 2 ? "both" : fmt::format("all {}", ranking.worse.size()));
  }

  std::string tied_sentence(const Contest& ranking, const std::string& place) const {
    const int digits = ranking.column->measure.digits;
    std::vector<std::string> tied;
    for (const Rival& rival : ranking.tied) tied.push_back(with_difference(rival, digits));
    // A test that rejects equality alone may not do so among all pairs.
    const bool corrected = std::any_of(ranking.tied.begin(), ranking.tied.end(), [](const Rival& rival) {
      return rival.tested() && rival.pair->test.t_p < kSignificance;
    });
    std::string text = fmt::format(
        "{}, {} has the highest {}, {}, but {} do not distinguish it{} from {}.", place, name(ranking.best),
        ranking.measure, estimate_text(ranking.column->cells[ranking.best].estimate, digits),
        counted(ranking.units, ranking.unit),
        corrected ? fmt::format(", corrected for {},", counted(ranking.column->pairs.size(), "pair")) : "",
        some_of(std::move(tied)));
    if (ranking.worse.size() == 1) {
      const Rival& rival = ranking.worse.front();
      text += fmt::format(" {} is significantly worse, by {} ± {}.", name(rival.row),
                          fixed_number(rival.behind, digits), fixed_number(rival.half_width(), digits));
    } else if (!ranking.worse.empty()) {
      text += fmt::format(" Significantly worse: {}.", some_of(names(ranking.worse)));
    }
    return text;
  }

  /// Says what random orders and rankers that learn from the true grades have, for scale.
  std::string beside(const Contest& ranking) const {
    const int digits = ranking.column->measure.digits;
    std::string text;
    for (std::size_t row = 0; row < view_.table.rows.size(); ++row) {
      const MeanInterval& estimate = ranking.column->cells[row].estimate;
      if (!view_.table.skylines[row] || ranking.considered[row] || std::isnan(estimate.mean)) continue;
      text += fmt::format(" {}, trained on true grades, has {}.", name(row),
                          fixed_number(estimate.mean, digits));
    }
    if (ranking.rivals.empty()) {
      const double random = random_value(ranking.place == "offline" ? Measure::kRandomOfflineNdcg
                                                                    : Measure::kRandomDiscountedNdcg);
      if (std::isfinite(random))
        text += fmt::format(" Random orders have {}.", fixed_number(random, digits));
    }
    return text;
  }

  double random_value(Measure measure) const {
    for (const RankerTrials& ranker : view_.user.rankers) {
      const MeanCurve& curve = ranker.curve(measure);
      if (!curve.empty()) return curve.back().estimate.mean;
    }
    return std::nan("");
  }

  std::string what_would_tell(const Contest& offline, const Contest& online) const {
    const Contest& any = offline.column != nullptr ? offline : online;
    if (any.units < 2) {
      return fmt::format(
          "One {} does not show how far {}s differ; with five there are intervals and tests.", any.unit,
          any.unit);
    }
    std::string text;
    if (any.units < kFewUnits) {
      text = fmt::format("{} are few: their spread, and so every interval and test, is uncertain.",
                         counted(any.units, any.unit));
    }
    for (const Contest* ranking : {&offline, &online}) {
      if (ranking->column == nullptr || ranking->tied.empty()) continue;
      const std::string advice = advice_for(*ranking);
      if (!advice.empty()) text += (text.empty() ? "" : " ") + advice;
    }
    return text;
  }

  /// Says what would distinguish the best from its closest rival.
  std::string advice_for(const Contest& ranking) const {
    const auto found = std::find_if(ranking.tied.begin(), ranking.tied.end(),
                                    [](const Rival& rival) { return rival.tested(); });
    if (found == ranking.tied.end()) return "";
    const Rival& rival = *found;
    return rival.pair->test.difference.over_folds ? advice_for_folds(ranking, rival)
                                                  : advice_for_seeds(ranking, rival);
  }

  std::string advice_for_seeds(const Contest& ranking, const Rival& rival) const {
    const std::vector<double> differences = independent_values(rival.pair->differences);
    const double deviation =
        differences.size() < kFewUnits ? pooled_deviation(ranking) : deviation_of(differences);
    const double level = strictest_level(*ranking.column);
    if (!(deviation > 0.0)) return "";
    const int digits = ranking.column->measure.digits;
    const auto needed = sample_size(rival.behind, deviation, level);
    if (needed && *needed <= kMostAdvised) {
      return fmt::format(
          "About {} seeds would show the difference of {} between {} and {} {}, if it is real.",
          std::max({*needed, differences.size() + 1, kFewUnits + 1}),
          fixed_number(std::abs(rival.behind), digits), name(ranking.best), name(rival.row), ranking.place);
    }
    const std::size_t more = differences.size() < 10 ? 20 : kMostAdvised;
    return fmt::format("{} seeds would show differences of {} {}; {} and {} are closer than that.", more,
                       fixed_number(detectable_difference(more, deviation, level), digits), ranking.place,
                       name(ranking.best), name(rival.row));
  }

  /// More seeds narrow only their own share of the spread.
  std::string advice_for_folds(const Contest& ranking, const Rival& rival) const {
    const SpreadOfFolds spread = spread_of(rival.pair->differences);
    const int digits = ranking.column->measure.digits;
    const std::string difference = fixed_number(std::abs(rival.behind), digits);
    if (std::isnan(spread.seeds)) {
      return fmt::format("Several seeds in each fold would narrow the intervals {} where seeds differ.",
                         ranking.place);
    }
    const double level = strictest_level(*ranking.column);
    const double allowed =
        std::pow(std::abs(rival.behind) / detectable_difference(ranking.units, 1.0, level), 2.0);
    const double seeds = std::ceil(spread.seeds / (allowed - spread.folds));
    if (allowed <= spread.folds || seeds > static_cast<double>(kMostAdvised)) {
      return fmt::format(
          "More seeds would not tell {} from {} {}: the {} folds themselves disagree too much about a "
          "difference of {}.",
          name(ranking.best), name(rival.row), ranking.place, ranking.units, difference);
    }
    return fmt::format(
        "About {} in each fold would show the difference of {} between {} and {} {}, if it is real.",
        counted(static_cast<std::int64_t>(seeds), "seed"), difference, name(ranking.best), name(rival.row),
        ranking.place);
  }

  const UserView& view_;
};

}  // namespace

bool are_studies(const Report& report) {
  return !report.experiments.empty() &&
         std::all_of(report.experiments.begin(), report.experiments.end(),
                     [](const ExperimentResults& experiment) { return experiment.study.has_value(); });
}

Findings findings_of(const UserView& view) {
  return Writer(view).write();
}

std::string whose_findings(const UserView& view) {
  const std::string on = view.report.data.size() > 1 ? " on " + short_name(view.report, view.data) : "";
  return view.user.user + " user" + on;
}

std::string findings_text(const Report& report, std::int64_t columns) {
  std::string text;
  const auto add = [&](const std::string& whose, const Findings& findings) {
    text += wrapped(fmt::format("{}: {}", whose, findings.headline), columns, 2) + "\n";
    for (const std::string& sentence : findings.sentences)
      text += wrapped("  " + sentence, columns, 2) + "\n";
  };
  if (are_studies(report)) {
    for (const ExperimentResults& experiment : report.experiments) {
      const Study study = analyse_study(experiment, *experiment.study);
      for (const StudyUser& user : study.users) add(user.user + " user", study_findings(study, user));
    }
    return text;
  }
  for (const UserView& view : views_of(report)) add(whose_findings(view), findings_of(view));
  return text;
}

}  // namespace olrank
