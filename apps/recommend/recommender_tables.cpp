#include "apps/recommend/recommender_tables.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/text/text_table.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::string shown_figure(const ordered_json& figures, const std::string& name) {
  if (!figures[name].is_number()) return "–";
  const ordered_json& width = figures["half_width"][name];
  const std::string mean = fmt::format("{:.4f}", figures[name].get<double>());
  return width.is_number() ? fmt::format("{} ± {:.4f}", mean, width.get<double>()) : mean;
}

std::vector<std::string> figure_names(const ordered_json& figures) {
  std::vector<std::string> names;
  for (const auto& [name, value] : figures.items()) {
    if (name.find('@') != std::string::npos) names.push_back(name);
  }
  return names;
}

}  // namespace

std::string figures_table(const ordered_json& figures, int columns) {
  TextTable table({{"figure", true}, {"mean over users"}});
  for (const std::string& name : figure_names(figures)) table.add({name, shown_figure(figures, name)});
  return table.fitted(columns).text;
}

void print_recommender_summary(const ordered_json& summary, const OutputFlags& output) {
  if (output.json) return write_output(dump_json(summary, 2) + "\n");
  const ordered_json& test = summary["test"];
  std::string text = fmt::format("{}: test part, {} users", summary["kind"].get<std::string>(),
                                 test["users"].get<std::int64_t>());
  if (const auto left_out = test.value("left_out_users", std::int64_t{0}); left_out > 0)
    text += fmt::format(", {} left out for lack of a training review", left_out);
  text += "\n" + figures_table(test, output.columns());
  if (test.contains("few_reviews") && test["few_reviews"]["ndcg@50"].is_number()) {
    text += fmt::format("{} users with at most {} training reviews: ndcg@50 {}\n",
                        test["few_reviews"]["users"].get<std::int64_t>(), kFewReviews,
                        shown_figure(test["few_reviews"], "ndcg@50"));
  }
  if (test.contains("cold_start")) {
    text += "known reviews of new users\n";
    for (const ordered_json& known : test["cold_start"])
      text += fmt::format("{}: ndcg@50 {}\n", known["known_reviews"].get<std::int64_t>(),
                          shown_figure(known, "ndcg@50"));
  }
  write_output(text);
}

}  // namespace olrank
