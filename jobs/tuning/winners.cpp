#include "jobs/tuning/tuning.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/text/text_table.h"
#include "jobs/settings/run_settings.h"
#include "report/markup.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// The moments that files have.
struct Figure {
  const char* name;
  MeanInterval TrialMoments::*moments;
  bool at_cutoff;
};
constexpr Figure kFigures[] = {{"offline_area", &TrialMoments::offline_area, false},
                               {"online_area", &TrialMoments::online_area, false},
                               {"offline_ndcg", &TrialMoments::offline_ndcg, true},
                               {"cndcg", &TrialMoments::discounted_ndcg, true}};

/// Every key that some ranker sweeps, in order of first occurrence.
std::vector<std::string> swept_keys(const Configuration& configuration) {
  std::vector<std::string> keys;
  for (const RankerSettings& ranker : configuration.rankers) {
    for (const SweepAxis& axis : axes_of(configuration.sweep, ranker)) {
      if (std::find(keys.begin(), keys.end(), axis.key) == keys.end()) keys.push_back(axis.key);
    }
  }
  return keys;
}

std::string value_cells(const GridPoint& point, const std::vector<std::string>& keys) {
  std::string cells;
  for (const std::string& key : keys) {
    const auto value = std::find_if(point.values.begin(), point.values.end(),
                                    [&](const auto& entry) { return entry.first == key; });
    cells += "," + (value == point.values.end() ? "" : plain_text(value->second));
  }
  return cells;
}

std::string header(std::string_view first, const std::vector<std::string>& keys, std::int64_t cutoff) {
  std::string text(first);
  for (const std::string& key : keys) text += "," + key;
  text += ",trials";
  for (const Figure& figure : kFigures) {
    const std::string name =
        figure.at_cutoff ? fmt::format("{}@{}", figure.name, cutoff) : std::string(figure.name);
    text += fmt::format(",{0},{0}_sd", name);
  }
  return text;
}

std::string moment_cells(const TrialMoments& of_trials) {
  std::string cells = fmt::format(",{}", of_trials.trials);
  for (const Figure& figure : kFigures) {
    const MeanInterval& moments = of_trials.*figure.moments;
    cells += "," + csv_number(moments.mean) + "," + csv_number(moments.deviation);
  }
  return cells;
}

std::string choice_text(const GridPoint& point) {
  std::string text;
  for (const auto& [key, value] : point.values)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, plain_text(value));
  return text.empty() ? "-" : text;
}

std::string moments_text(const MeanInterval& moments, int digits) {
  return plain_estimate(moments, digits, false);
}

ordered_json moments_json(const TrialMoments& of_trials) {
  ordered_json json = {{"trials", of_trials.trials}};
  for (const Figure& figure : kFigures) {
    const MeanInterval& moments = of_trials.*figure.moments;
    json[figure.name] = {{"mean", moments.mean}, {"sd", moments.deviation}};  // NaN is written as null
  }
  return json;
}

}  // namespace

std::vector<Winner> winners_of(const Configuration& configuration, const std::vector<GridPoint>& grid,
                               const std::vector<TriedPoint>& tried) {
  std::vector<Winner> winners;
  for (const RankerSettings& ranker : configuration.rankers) {
    const std::vector<SweepAxis> axes = axes_of(configuration.sweep, ranker);
    if (axes.empty()) winners.push_back({{ranker.name, ranker, {}}, {}, 0.0, {}, {}});
    for (const TriedPoint& one : tried) {
      const GridPoint& point = grid[one.point];
      if (one.chosen && point.ranker == ranker.name)
        winners.push_back({point, one.moments, one.worst_gain, {}, edge_notes(point, axes)});
    }
  }
  return winners;
}

Configuration test_configuration(const Configuration& configuration, const std::vector<Winner>& winners,
                                 const std::filesystem::path& out) {
  Configuration test = configuration;
  test.sweep.clear();
  test.search = {};
  test.data.evaluate = EvaluationPart::kTest;
  test.run.out = out.string();
  test.rankers.clear();
  for (const Winner& winner : winners) {
    test.rankers.push_back(winner.point.settings);
    test.rankers.back().name = winner.point.ranker;
  }
  return test;
}

TrialMatrix matrix_of(const Configuration& configuration) {
  return {configuration.data.folds, configuration.clicks.models, configuration.protocol.seeds};
}

std::string tuning_csv(const Configuration& configuration, const std::vector<GridPoint>& grid,
                       const std::vector<TriedPoint>& tried) {
  const std::vector<std::string> keys = swept_keys(configuration);
  std::string text = header("ranker,point", keys, configuration.protocol.cutoff) + ",chosen,worst_gain\n";
  for (const TriedPoint& one : tried) {
    const GridPoint& point = grid[one.point];
    text += fmt::format("{},{}{}{},{},{}\n", point.ranker, point.settings.name, value_cells(point, keys),
                        moment_cells(one.moments), one.chosen ? 1 : 0, csv_number(one.worst_gain));
  }
  return text;
}

std::string winners_csv(const Configuration& configuration, const std::vector<Winner>& winners) {
  const std::vector<std::string> keys = swept_keys(configuration);
  std::string text = header("ranker", keys, configuration.protocol.cutoff) + "\n";
  for (const Winner& winner : winners) {
    text += fmt::format("{}{}{}\n", winner.point.ranker, value_cells(winner.point, keys),
                        moment_cells(winner.test));
  }
  return text;
}

std::string winners_text(const Configuration& configuration, const std::vector<Winner>& winners,
                         SweepCriterion by, std::int64_t columns) {
  const std::int64_t cutoff = configuration.protocol.cutoff;
  const bool by_worst = by == SweepCriterion::kWorst;
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "chosen on vali", .is_name = true},
                   {.header = by_worst ? "worst gain on vali" : fmt::format("{} area on vali", name_of(by)),
                    .dropped = 2},
                   {.header = "trials", .dropped = 1},
                   {.header = fmt::format("test: offline ndcg@{}", cutoff)},
                   {.header = fmt::format("online cndcg@{}", cutoff), .dropped = 3}});
  std::string notes;
  for (const Winner& winner : winners) {
    const std::string value =
        by_worst ? fmt::format("{:.4f}", winner.worst_gain) : moments_text(winner.tuning.area(by), 4);
    table.add({winner.point.ranker, choice_text(winner.point), winner.tuning.trials > 0 ? value : "-",
               fmt::format("{}", winner.test.trials), moments_text(winner.test.offline_ndcg, 4),
               moments_text(winner.test.discounted_ndcg, 1)});
    for (const std::string& note : winner.notes) {
      notes +=
          fmt::format("Note: {}: {}; the optimum may lie outside the sweep.\n", winner.point.ranker, note);
    }
  }
  notes += fmt::format("Here {}.\n", meaning_of_intervals("the trials of a line"));
  const TextTable::Fitted fitted = table.fitted(columns);
  return fitted.text + hidden_columns_text(fitted.hidden, columns) + wrapped(notes, columns, 2);
}

std::string winners_json(const Configuration& configuration, const std::vector<Winner>& winners,
                         SweepCriterion by) {
  auto lines = ordered_json::array();
  for (const Winner& winner : winners) {
    auto chosen = ordered_json::object();
    for (const auto& [key, value] : winner.point.values) chosen[key] = setting_json(value);
    ordered_json line = {{"ranker", winner.point.ranker}};
    line["chosen"] = chosen;
    line["tuning"] = winner.tuning.trials > 0 ? moments_json(winner.tuning) : ordered_json(nullptr);
    if (by == SweepCriterion::kWorst && winner.tuning.trials > 0) line["worst_gain"] = winner.worst_gain;
    line["test"] = moments_json(winner.test);
    line["notes"] = winner.notes;
    lines.push_back(line);
  }
  const ordered_json json = {
      {"by", name_of(by)}, {"cutoff", configuration.protocol.cutoff}, {"winners", lines}};
  return json.dump(2) + "\n";
}

}  // namespace olrank
