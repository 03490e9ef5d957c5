#include "report/summary_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/metrics/named_metric.h"
#include "core/runtime/log.h"
#include "core/statistics/mean_interval.h"
#include "core/text/columns.h"
#include "core/text/counted.h"
#include "core/text/csv.h"
#include "core/text/text_table.h"
#include "report/moments.h"
#include "sim/curve.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

SummaryRow read_summary(const fs::path& file) {
  const auto json = try_parse_json(read_file(file, kLargestJson));
  try {
    SummaryRow row;
    row.identity = {json.at("ranker"), json.at("clicks"), json.at("fold"), json.at("seed")};
    const auto& last = json.at("last");
    row.rounds = last.at("round");
    row.pairs = last.at("pairs");
    const std::string figure = last.at("offline").begin().key();  // "ndcg@10"
    row.cutoff = std::stoll(figure.substr(figure.find('@') + 1));
    const auto number = [](const nlohmann::json& value) {
      return value.is_null() ? std::nan("") : value.get<double>();
    };
    row.offline_ndcg = number(last.at("offline").at(figure));
    const auto& online = last.at("online");
    row.online_ndcg = number(online.at(figure));
    row.discounted_ndcg = number(online.at("c" + figure));
    if (!online.at("regret").is_null()) row.regret = online.at("regret").get<std::int64_t>();
    if (!last.at("certain_share").is_null()) row.certain_share = last.at("certain_share").get<double>();
    if (const auto wrong = last.find("false_certain"); wrong != last.end())
      row.false_certain = wrong->at("share").get<double>();
    if (!last.at("blocks").is_null()) row.blocks = last.at("blocks").get<double>();
    if (const auto fairness = json.find("fairness"); fairness != json.end()) {
      row.unfairness = number(fairness->at("unfairness"));
      row.fair_share = number(fairness->at("fair_share"));
    }
    row.parameters = json.at("parameters");
    row.offline_area = number(json.at("area").at("offline"));
    row.online_area = number(json.at("area").at("online"));
    row.seconds = json.at("seconds");
    row.rounds_per_second = json.at("rounds_per_second");
    row.result_fingerprint = json.at("result_fingerprint");
    if (const auto random = last.find("random"); random != last.end()) {
      row.random_offline_ndcg = number(random->at("offline").at(figure));
      row.random_online_ndcg = number(random->at("online").at(figure));
      row.random_discounted_ndcg = number(random->at("online").at("c" + figure));
    }
    row.notes = json.value("notes", std::vector<std::string>());
    if (const auto metrics = last.find("metrics"); metrics != last.end()) {
      for (const auto& [name, value] : metrics->items()) row.metrics.emplace_back(name, number(value));
    }
    return row;
  } catch (const std::exception&) {
    throw IoError(fmt::format("{}: This file is not a trial summary.", file.string()));
  }
}

template <class Value>
Moments moments_of(const std::vector<const SummaryRow*>& rows, Value&& value) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const SummaryRow* row : rows) values.push_back(value(*row));
  return olrank::moments_of(values);
}

/// The mean of those that have the share: "26.3 %", or "-" if none has.
std::string mean_share_text(const std::vector<const SummaryRow*>& rows,
                            std::optional<double> SummaryRow::*share) {
  double sum = 0.0;
  int count = 0;
  for (const SummaryRow* row : rows) {
    if (!(row->*share)) continue;
    sum += *(row->*share);
    ++count;
  }
  return count > 0 ? fmt::format("{:.1f} %", 100.0 * sum / count) : "-";
}

bool have_groups(const std::vector<SummaryRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const SummaryRow& row) { return row.unfairness; });
}

/// The added metrics that any row has, in the order of NamedMetric.
std::vector<std::string> metrics_of(const std::vector<SummaryRow>& rows) {
  std::set<NamedMetric> found;
  for (const SummaryRow& row : rows) {
    for (const auto& [name, value] : row.metrics) {
      if (const auto metric = metric_named(name)) found.insert(*metric);
    }
    found.erase({MetricKind::kNdcg, row.cutoff});  // has a column of its own
  }
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const NamedMetric& metric : found) names.push_back(metric.name());
  return names;
}

double metric_of(const SummaryRow& row, const std::string& name) {
  for (const auto& [known, value] : row.metrics) {
    if (known == name) return value;
  }
  return std::nan("");
}

/// Stands in the column of rankers.
constexpr std::string_view kRandomOrder = "(random order)";

using Groups = std::map<std::pair<std::string, std::string>, std::vector<const SummaryRow*>>;

/// Each with its trial: "fold 1, seed 2: …".
std::vector<std::string> notes_of(const std::vector<const SummaryRow*>& group) {
  std::vector<std::string> notes;
  for (const SummaryRow* row : group) {
    for (const std::string& note : row->notes)
      notes.push_back(fmt::format("fold {}, seed {}: {}", row->identity.fold, row->identity.seed, note));
  }
  return notes;
}

Groups by_user_and_ranker(const std::vector<SummaryRow>& rows) {
  Groups groups;
  for (const SummaryRow& row : rows) groups[{row.identity.user, row.identity.ranker}].push_back(&row);
  return groups;
}

/// By fold, for an interval that takes the trials of a fold for what they are: not independent.
template <class Value>
MeanInterval interval_of(const std::vector<const SummaryRow*>& rows, Value&& value) {
  std::map<std::int64_t, std::vector<double>> folds;
  for (const SummaryRow* row : rows) folds[row->identity.fold].push_back(value(*row));
  FoldedValues values;
  values.reserve(folds.size());
  for (auto& [fold, seeds] : folds) values.push_back(std::move(seeds));
  return mean_interval(values);
}

std::string interval_text(const MeanInterval& interval, int digits) {
  return olrank::interval_text(interval.mean, interval.half_width, digits);
}

std::string meaning_of_intervals(const std::vector<SummaryRow>& rows) {
  std::set<std::int64_t> folds;
  std::set<std::int64_t> seeds;
  for (const SummaryRow& row : rows) {
    folds.insert(row.identity.fold);
    seeds.insert(row.identity.seed);
  }
  if (folds.size() > 1) return olrank::meaning_of_intervals(fmt::format("{} fold means", folds.size()));
  if (seeds.size() > 1) return olrank::meaning_of_intervals(fmt::format("{} seeds", seeds.size()));
  return "no intervals, because there is only one seed";
}

/// A random order of the documents in the trials of one user. Rankers share their queries, so each fold and
/// seed counts once. Nothing if a summary of an earlier version lacks the figures.
void add_random_order(const std::vector<SummaryRow>& rows, const std::string& user, TextTable& table) {
  std::map<std::pair<std::int64_t, std::int64_t>, const SummaryRow*> places;
  for (const SummaryRow& row : rows) {
    if (row.identity.user == user) places[{row.identity.fold, row.identity.seed}] = &row;
  }
  std::vector<const SummaryRow*> once;
  once.reserve(places.size());
  for (const auto& [place, row] : places) once.push_back(row);
  const double offline =
      interval_of(once, [](const SummaryRow& row) { return row.random_offline_ndcg; }).mean;
  const double online =
      interval_of(once, [](const SummaryRow& row) { return row.random_discounted_ndcg; }).mean;
  if (!std::isfinite(offline) || !std::isfinite(online)) return;
  std::vector<std::string> cells = {user, std::string(kRandomOrder), "-", fmt::format("{:.4f}", offline),
                                    fmt::format("{:.1f}", online)};
  cells.resize(table.columns(), "-");
  table.add(std::move(cells));
}

/// The notes of trials, a line each; of many, the first ones and their number.
std::string notes_text(const std::vector<SummaryRow>& rows) {
  constexpr std::int64_t kMost = 10;
  std::string text;
  std::int64_t notes = 0;
  for (const SummaryRow& row : rows) {
    for (const std::string& note : row.notes) {
      if (++notes <= kMost) text += fmt::format("Note: {}: {}\n", row.identity.path().string(), note);
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

std::vector<SummaryRow> read_summaries(const fs::path& experiment, std::vector<std::string>* damage) {
  std::vector<SummaryRow> rows;
  for (const TrialIdentity& identity : trials_in(experiment)) {
    if (!is_finished(experiment, identity)) continue;
    try {
      rows.push_back(read_summary(experiment / identity.path() / "summary.json"));
    } catch (const IoError& error) {
      if (damage == nullptr) throw;
      damage->push_back(error.what());
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const SummaryRow& a, const SummaryRow& b) { return a.identity < b.identity; });
  return rows;
}

std::string summary_csv(const std::vector<SummaryRow>& rows) {
  const std::int64_t cutoff = rows.empty() ? 10 : rows.front().cutoff;
  std::string text = fmt::format(
      "ranker,clicks,fold,seed,rounds,pairs,parameters,offline_ndcg@{0},online_ndcg@{0},cndcg@{0},regret,"
      "certain_share,"
      "blocks,offline_area,online_area,result_fingerprint,random_offline_ndcg@{0},random_online_ndcg@{0},"
      "random_cndcg@{0}",
      cutoff);
  const std::vector<std::string> metrics = metrics_of(rows);
  for (const std::string& name : metrics) text += ",offline_" + name;
  const bool fairness = have_groups(rows);
  if (fairness) text += ",unfairness,fair_share";
  text += '\n';
  for (const SummaryRow& row : rows) {
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(row.identity.ranker),
        csv_field(row.identity.user), row.identity.fold, row.identity.seed, row.rounds, row.pairs,
        row.parameters, csv_number(row.offline_ndcg), csv_number(row.online_ndcg),
        csv_number(row.discounted_ndcg), csv_number(row.regret), csv_number(row.certain_share),
        csv_number(row.blocks), csv_number(row.offline_area), csv_number(row.online_area),
        row.result_fingerprint, csv_number(row.random_offline_ndcg), csv_number(row.random_online_ndcg),
        csv_number(row.random_discounted_ndcg));
    for (const std::string& name : metrics) text += "," + csv_number(metric_of(row, name));
    if (fairness) text += fmt::format(",{},{}", csv_number(row.unfairness), csv_number(row.fair_share));
    text += '\n';
  }
  return text;
}

std::string conventions_text(const ResultConventions& about) {
  return fmt::format("protocol {}, queries without a relevant document: {}, seeds {}{}{}", about.protocol,
                     about.empty_queries, fmt::join(about.seeds, ", "),
                     about.deviations.empty() ? "" : "; ", fmt::join(about.deviations, "; "));
}

std::string summary_text(const std::vector<SummaryRow>& rows, const ResultConventions& about,
                         std::int64_t columns) {
  if (rows.empty()) return "No trial has finished yet.\n";
  const std::int64_t cutoff = rows.front().cutoff;
  std::vector<TextTable::Column> headers = {
      {.header = "clicks", .is_name = true},
      {.header = "ranker", .is_name = true},
      {.header = "trials", .dropped = 2},
      {.header = fmt::format("offline ndcg@{}", cutoff)},
      {.header = fmt::format("online cndcg@{}", cutoff), .dropped = 5},
      {.header = "certain", .dropped = 4},
      {.header = "wrong", .dropped = 3},
      {.header = "rounds/s", .dropped = 1}};
  const bool fairness = have_groups(rows);
  if (fairness) {
    headers.push_back({.header = "unfairness"});
    headers.push_back({.header = "fair rounds"});
  }
  TextTable table(std::move(headers));
  const Groups groups = by_user_and_ranker(rows);
  for (auto at = groups.begin(); at != groups.end(); ++at) {
    const auto& [name, group] = *at;
    const auto interval = [&group = group](auto value) { return interval_of(group, value); };
    std::vector<std::string> cells = {
        name.first,
        name.second,
        fmt::format("{}", group.size()),
        interval_text(interval([](const SummaryRow& row) { return row.offline_ndcg; }), 4),
        interval_text(interval([](const SummaryRow& row) { return row.discounted_ndcg; }), 1),
        mean_share_text(group, &SummaryRow::certain_share),
        mean_share_text(group, &SummaryRow::false_certain),
        fmt::format("{:.0f}", interval([](const SummaryRow& row) { return row.rounds_per_second; }).mean)};
    if (fairness) {
      const auto size = [](const SummaryRow& row) {
        return std::abs(row.unfairness.value_or(std::nan("")));
      };
      cells.push_back(fmt::format("{:.2f}", interval(size).mean));
      cells.push_back(mean_share_text(group, &SummaryRow::fair_share));
    }
    table.add(std::move(cells));
    if (const auto next = std::next(at); next == groups.end() || next->first.first != name.first)
      add_random_order(rows, name.first, table);
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  const std::string below =
      fmt::format("Protocol {}; queries without a relevant document: {}; seeds {}; {}.\n", about.protocol,
                  about.empty_queries, fmt::join(about.seeds, ", "), meaning_of_intervals(rows));
  return fitted.text + "\n" + hidden_columns_text(fitted.hidden, columns) +
         wrapped(below + by_place(about.deviations) + notes_text(rows), columns, 4);
}

std::string summary_means_json(const std::vector<SummaryRow>& rows, const ResultConventions& about) {
  auto json = nlohmann::ordered_json::array();
  const std::vector<std::string> metrics = metrics_of(rows);
  for (const auto& [name, group] : by_user_and_ranker(rows)) {
    const auto figure = [&group = group](auto value) {
      const Moments moments = moments_of(group, value);
      auto object = nlohmann::ordered_json::object();
      object["mean"] = moments.mean;  // not a number prints as null
      object["sd"] = moments.deviation;
      object["half_width"] = interval_of(group, value).half_width;
      return object;
    };
    auto object = nlohmann::ordered_json::object();
    object["clicks"] = name.first;
    object["ranker"] = name.second;
    object["trials"] = group.size();
    object["cutoff"] = group.front()->cutoff;
    object["offline_ndcg"] = figure([](const SummaryRow& row) { return row.offline_ndcg; });
    object["online_ndcg"] = figure([](const SummaryRow& row) { return row.online_ndcg; });
    object["cndcg"] = figure([](const SummaryRow& row) { return row.discounted_ndcg; });
    object["offline_area"] = figure([](const SummaryRow& row) { return row.offline_area; });
    object["rounds_per_second"] = figure([](const SummaryRow& row) { return row.rounds_per_second; });
    object["random_offline_ndcg"] = figure([](const SummaryRow& row) { return row.random_offline_ndcg; });
    object["random_online_ndcg"] = figure([](const SummaryRow& row) { return row.random_online_ndcg; });
    object["random_cndcg"] = figure([](const SummaryRow& row) { return row.random_discounted_ndcg; });
    for (const std::string& metric : metrics) {
      object["metrics"][metric] =
          figure([&metric](const SummaryRow& row) { return metric_of(row, metric); });
    }
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
