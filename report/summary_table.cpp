#include "report/outputs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "core/metrics/metric_options.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "report/final_measures.h"
#include "report/markup.h"
#include "report/report.h"

namespace olrank {
namespace {

/// The mean of those that have the share: "26.3 %", or "-" if none has.
std::string mean_share_text(const TrialList& trials, Measure share) {
  const double mean = final_mean(trials, share).mean;
  return std::isfinite(mean) ? fmt::format("{:.1f} %", 100.0 * mean) : "-";
}

bool have_groups(const TrialList& trials) {
  return std::any_of(trials.begin(), trials.end(), [](const TrialResults* trial) {
    return std::isfinite(trial->last[Measure::kFairShare]);
  });
}

/// The added metrics that any trial has.
std::set<NamedMetric> metrics_of(const TrialList& trials) {
  std::set<NamedMetric> found;
  for (const TrialResults* trial : trials) {
    for (const Measure measure : trial->last.added()) {
      if (const auto metric = metric_of(measure)) found.insert(*metric);
    }
    found.erase({MetricKind::kNdcg, trial->cutoff});  // has a column of its own
  }
  return found;
}

constexpr std::string_view kRandomOrder = "(random order)";

using Groups = std::map<std::pair<std::string, std::string>, TrialList>;

/// Each with its trial: "fold 1, seed 2: …".
std::vector<std::string> notes_of(const TrialList& group) {
  std::vector<std::string> notes;
  for (const TrialResults* trial : group) {
    for (const std::string& note : trial->notes)
      notes.push_back(
          fmt::format("fold {}, seed {}: {}", trial->identity.fold, trial->identity.seed, note));
  }
  return notes;
}

Groups by_user_and_ranker(const TrialList& trials) {
  Groups groups;
  for (const TrialResults* trial : trials)
    groups[{trial->identity.user, trial->identity.ranker}].push_back(trial);
  return groups;
}

std::string mean_text(const TrialList& trials, Measure measure, int digits) {
  return plain_estimate(final_mean(trials, measure), digits, false);
}

std::string meaning_of_intervals(const TrialList& trials) {
  std::set<std::int64_t> folds;
  std::set<std::int64_t> seeds;
  for (const TrialResults* trial : trials) {
    folds.insert(trial->identity.fold);
    seeds.insert(trial->identity.seed);
  }
  if (folds.size() > 1)
    return olrank::meaning_of_intervals(fmt::format("the trials of {} folds", folds.size()));
  if (seeds.size() > 1) return olrank::meaning_of_intervals(fmt::format("{} seeds", seeds.size()));
  return "no intervals, because there is only one seed";
}

/// A random order of the documents in the trials of one user. Rankers share their queries, so each fold and
/// seed counts once. Nothing if a summary of an earlier version lacks the figures.
void add_random_order(const TrialList& trials, const std::string& user, TextTable& table) {
  std::map<std::pair<std::int64_t, std::int64_t>, const TrialResults*> places;
  for (const TrialResults* trial : trials) {
    if (trial->identity.user == user) places[{trial->identity.fold, trial->identity.seed}] = trial;
  }
  TrialList once;
  once.reserve(places.size());
  for (const auto& [place, trial] : places) once.push_back(trial);
  const double offline = final_mean(once, Measure::kRandomOfflineNdcg).mean;
  const double online = final_mean(once, Measure::kRandomDiscountedNdcg).mean;
  if (!std::isfinite(offline) || !std::isfinite(online)) return;
  std::vector<std::string> cells = {user, std::string(kRandomOrder), "-", fmt::format("{:.4f}", offline),
                                    fmt::format("{:.1f}", online)};
  cells.resize(table.columns(), "-");
  table.add(std::move(cells));
}

/// The notes of trials, a line each; of many, the first ones and their number.
std::string notes_text(const TrialList& trials) {
  constexpr std::int64_t kMost = 10;
  std::string text;
  std::int64_t notes = 0;
  for (const TrialResults* trial : trials) {
    for (const std::string& note : trial->notes) {
      if (++notes <= kMost) text += fmt::format("Note: {}: {}\n", trial->identity.path().string(), note);
    }
  }
  if (notes > kMost)
    text += fmt::format("{} more in summary.json of their trials.\n", counted(notes - kMost, "note"));
  return text;
}

/// Deviations as "PLACE: KEY = VALUE (…)"; a line a place.
std::string by_place(const std::vector<std::string>& deviations) {
  std::string text;
  std::string_view latest;
  for (const std::string& deviation : deviations) {
    const std::size_t colon = std::min(deviation.find(": "), deviation.size());
    const std::string_view place = std::string_view(deviation).substr(0, colon);
    if (!text.empty() && place == latest) {
      text += "," + deviation.substr(std::min(colon + 1, deviation.size()));
    } else {
      text += fmt::format("{}  {}", text.empty() ? "" : "\n", deviation);
    }
    latest = place;
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string summary_csv(const TrialList& trials) {
  const std::int64_t cutoff = trials.empty() ? 10 : trials.front()->cutoff;
  std::string text = fmt::format(
      "ranker,clicks,fold,seed,rounds,pairs,parameters,offline_ndcg@{0},online_ndcg@{0},cndcg@{0},regret,"
      "certain_share,"
      "blocks,offline_area,online_area,result_fingerprint,random_offline_ndcg@{0},random_online_ndcg@{0},"
      "random_cndcg@{0}",
      cutoff);
  const std::set<NamedMetric> metrics = metrics_of(trials);
  for (const NamedMetric& metric : metrics) text += ",offline_" + metric.name();
  const bool fairness = have_groups(trials);
  if (fairness) text += ",unfairness,fair_share";
  text += '\n';
  for (const TrialResults* trial : trials) {
    const auto last = [trial](Measure measure) { return csv_number(trial->last[measure]); };
    const TrialIdentity& identity = trial->identity;
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(identity.ranker),
                    csv_field(identity.user), identity.fold, identity.seed, trial->rounds, trial->pairs,
                    trial->parameters, last(Measure::kOfflineNdcg), last(Measure::kOnlineNdcg),
                    last(Measure::kDiscountedNdcg), last(Measure::kRegret), last(Measure::kCertainShare),
                    last(Measure::kBlocks), csv_number(trial->offline_area), csv_number(trial->online_area),
                    trial->fingerprint, last(Measure::kRandomOfflineNdcg), last(Measure::kRandomOnlineNdcg),
                    last(Measure::kRandomDiscountedNdcg));
    for (const NamedMetric& metric : metrics) text += "," + last(measure_of(metric));
    if (fairness) text += fmt::format(",{},{}", last(Measure::kUnfairness), last(Measure::kFairShare));
    text += '\n';
  }
  return text;
}

std::string summary_text(const TrialList& trials, const ResultConventions& about, std::int64_t columns) {
  if (trials.empty()) return "No trial has finished yet.\n";
  const std::int64_t cutoff = trials.front()->cutoff;
  std::vector<TextTable::Column> headers = {
      {.header = "clicks", .is_name = true},
      {.header = "ranker", .is_name = true},
      {.header = "trials", .dropped = 2},
      {.header = fmt::format("offline ndcg@{}", cutoff)},
      {.header = fmt::format("online cndcg@{}", cutoff), .dropped = 5},
      {.header = "certain", .dropped = 4},
      {.header = "wrong", .dropped = 3},
      {.header = "rounds/s", .dropped = 1}};
  const bool fairness = have_groups(trials);
  if (fairness) {
    headers.push_back({.header = "unfairness"});
    headers.push_back({.header = "fair rounds"});
  }
  TextTable table(std::move(headers));
  const Groups groups = by_user_and_ranker(trials);
  for (auto at = groups.begin(); at != groups.end(); ++at) {
    const auto& [name, group] = *at;
    std::vector<std::string> cells = {
        name.first,
        name.second,
        fmt::format("{}", group.size()),
        mean_text(group, Measure::kOfflineNdcg, 4),
        mean_text(group, Measure::kDiscountedNdcg, 1),
        mean_share_text(group, Measure::kCertainShare),
        mean_share_text(group, Measure::kFalseCertain),
        fmt::format("{:.0f}", mean_interval(by_fold(group, &TrialResults::rounds_per_second)).mean)};
    if (fairness) {
      cells.push_back(fmt::format("{:.2f}", final_mean(group, Measure::kUnfairness).mean));
      cells.push_back(mean_share_text(group, Measure::kFairShare));
    }
    table.add(std::move(cells));
    if (const auto next = std::next(at); next == groups.end() || next->first.first != name.first)
      add_random_order(trials, name.first, table);
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  const std::string below =
      fmt::format("Protocol {}; queries without a relevant document: {}; seeds {}; {}.\n", about.protocol,
                  about.empty_queries, fmt::join(about.seeds, ", "), meaning_of_intervals(trials));
  return fitted.text + "\n" + hidden_columns_text(fitted.hidden, columns) +
         wrapped(below + by_place(about.deviations) + notes_text(trials), columns, 4);
}

std::string summary_means_json(const TrialList& trials, const ResultConventions& about) {
  auto json = nlohmann::ordered_json::array();
  const std::set<NamedMetric> metrics = metrics_of(trials);
  for (const auto& [name, group] : by_user_and_ranker(trials)) {
    const auto figure = [&group = group](auto value) {
      const MeanInterval interval = mean_interval(by_fold(group, value));
      return nlohmann::ordered_json{// not a number prints as null
                                    {"mean", interval.mean},
                                    {"sd", interval.deviation},
                                    {"half_width", interval.half_width}};
    };
    const auto at_end = [&figure](Measure measure) {
      return figure([measure](const TrialResults& trial) { return final_value(trial, measure); });
    };
    auto object = nlohmann::ordered_json::object();
    object["clicks"] = name.first;
    object["ranker"] = name.second;
    object["trials"] = group.size();
    object["cutoff"] = group.front()->cutoff;
    object["offline_ndcg"] = at_end(Measure::kOfflineNdcg);
    object["online_ndcg"] = at_end(Measure::kOnlineNdcg);
    object["cndcg"] = at_end(Measure::kDiscountedNdcg);
    object["certain_share"] = at_end(Measure::kCertainShare);
    object["false_certain"] = at_end(Measure::kFalseCertain);
    object["offline_area"] = figure(&TrialResults::offline_area);
    object["rounds_per_second"] = figure(&TrialResults::rounds_per_second);
    object["random_offline_ndcg"] = at_end(Measure::kRandomOfflineNdcg);
    object["random_online_ndcg"] = at_end(Measure::kRandomOnlineNdcg);
    object["random_cndcg"] = at_end(Measure::kRandomDiscountedNdcg);
    for (const NamedMetric& metric : metrics) object["metrics"][metric.name()] = at_end(measure_of(metric));
    object["notes"] = notes_of(group);
    object["protocol"] = about.protocol;
    object["empty_queries"] = about.empty_queries;
    object["seeds"] = about.seeds;
    object["deviations"] = about.deviations;
    json.push_back(object);
  }
  return json.dump(2) + "\n";
}

}  // namespace olrank
