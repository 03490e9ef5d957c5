#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "core/text/counted.h"
#include "core/text/nearest.h"
#include "core/text/text_table.h"
#include "jobs/eval_comparison.h"
#include "report/markup.h"
#include "report/number_text.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

int digits_of(const NamedMetric& metric) {
  return metric.is_share() ? 4 : 2;
}

std::string p_text(double p) {
  if (std::isnan(p)) return "-";
  return p < 0.0001 ? "<0.0001" : fmt::format("{:.4f}", p);
}

std::size_t queries_of(const EvalComparison& comparison) {
  std::size_t queries = 0;
  for (const EvalResult& fold : comparison.rankings.front().folds) queries += fold.qids.size();
  return queries;
}

std::string source_of(const EvalComparison& comparison) {
  const std::vector<EvalResult>& folds = comparison.rankings.front().folds;
  const EvalRequest& request = folds.front().request;
  if (!request.qrels.empty()) return request.qrels;
  std::vector<std::string> numbers;
  numbers.reserve(folds.size());
  for (const EvalResult& fold : folds) numbers.push_back(std::to_string(fold.request.fold));
  return fmt::format("{}, {} {}, {}", request.data, numbers.size() == 1 ? "fold" : "folds", joined(numbers),
                     request.part);
}

/// Which tests Holm's correction covers together.
std::string family_of(const EvalComparison& comparison) {
  const std::size_t pairs = comparison.differences.size() / comparison.metrics.size();
  const std::string of = comparison.given_baseline
                             ? fmt::format("{} with {}", counted(pairs, "comparison"),
                                           comparison.rankings[comparison.baseline].name)
                             : counted(pairs, "pair") + " of rankings";
  return fmt::format("all {} tests of one kind: {} times {}", comparison.differences.size(), of,
                     counted(comparison.metrics.size(), "metric"));
}

std::string difference_text(const RankingDifference& difference, int digits) {
  const MeanInterval& interval = difference.test.difference;
  return std::isnan(interval.mean) ? "-" : plain_estimate(interval, digits);
}

ordered_json difference_json(const EvalComparison& comparison, const RankingDifference& difference) {
  const MeanInterval& interval = difference.test.difference;
  return {{"metric", comparison.metrics[difference.metric].name()},
          {"a", comparison.rankings[difference.a].name},
          {"b", comparison.rankings[difference.b].name},
          {"queries", interval.values},
          {"difference", number_or_null(interval.mean)},
          {"low", number_or_null(interval.mean - interval.half_width)},
          {"high", number_or_null(interval.mean + interval.half_width)},
          {"t", number_or_null(difference.test.t)},
          {"t_p", number_or_null(difference.test.t_p)},
          {"t_p_holm", number_or_null(difference.t_holm)},
          {"sign_flip_p", number_or_null(difference.test.flip_p)},
          {"sign_flip_p_holm", number_or_null(difference.flip_holm)},
          {"sign_flips", difference.test.flips_exact ? "all" : "drawn"},
          {"wins", difference.wins},
          {"ties", difference.ties},
          {"losses", difference.losses}};
}

}  // namespace

std::string comparison_table(const EvalComparison& comparison) {
  const EvalResult& first = comparison.rankings.front().folds.front();
  std::string text =
      fmt::format("{:<17} {}\n{:<17} {}\n{:<17} {}\n\n",
                  first.request.qrels.empty() ? "data" : "judgements", source_of(comparison), "queries",
                  queries_of(comparison), "convention", conventions_of(first.request));
  std::vector<TextTable::Column> columns = {{"ranking", true}};
  for (const NamedMetric& metric : comparison.metrics) columns.push_back({metric.name()});
  TextTable rankings(columns);
  for (std::size_t i = 0; i < comparison.rankings.size(); ++i) {
    std::vector<std::string> row = {comparison.rankings[i].name};
    for (std::size_t metric = 0; metric < comparison.metrics.size(); ++metric) {
      const double mean = comparison.means[i][metric];
      row.push_back(std::isnan(mean) ? "-"
                                     : fmt::format("{:.{}f}", mean, digits_of(comparison.metrics[metric])));
    }
    rankings.add(std::move(row));
  }
  TextTable differences(
      {{"metric", true}, {"pair", true}, {"difference"}, {"p (t)"}, {"p (flip)"}, {"wins/ties/losses"}});
  for (const RankingDifference& difference : comparison.differences) {
    const NamedMetric& metric = comparison.metrics[difference.metric];
    differences.add({metric.name(),
                     fmt::format("{} - {}", comparison.rankings[difference.a].name,
                                 comparison.rankings[difference.b].name),
                     difference_text(difference, digits_of(metric)), p_text(difference.t_holm),
                     p_text(difference.flip_holm),
                     fmt::format("{}/{}/{}", difference.wins, difference.ties, difference.losses)});
  }
  text += rankings.fitted(0).text + "\n" + differences.fitted(0).text;
  text += fmt::format(
      "\nDifferences are means over queries, ± half the width of their 95 % t interval. p: paired by "
      "query, "
      "Student's t and sign flips, with Holm's correction over {}.{}\n",
      family_of(comparison),
      comparison.given_baseline
          ? ""
          : fmt::format(" {} is the best by {}.", comparison.rankings[comparison.baseline].name,
                        comparison.metrics.front().name()));
  return text;
}

std::string comparison_json(const EvalComparison& comparison) {
  const std::vector<EvalResult>& folds = comparison.rankings.front().folds;
  const EvalRequest& request = folds.front().request;
  ordered_json json;
  if (request.qrels.empty()) {
    json = {{"data", request.data}, {"folds", ordered_json::array()}, {"part", request.part}};
    for (const EvalResult& fold : folds) json["folds"].push_back(fold.request.fold);
  } else {
    json = {{"qrels", request.qrels}};
  }
  json["queries"] = queries_of(comparison);
  json["conventions"] = conventions_json(request, folds.front().report.max_grade);
  for (std::size_t i = 0; i < comparison.rankings.size(); ++i) {
    const ComparedRanking& ranking = comparison.rankings[i];
    ordered_json entry = {{"name", ranking.name}, {"file", ranking.file}};
    for (std::size_t metric = 0; metric < comparison.metrics.size(); ++metric)
      entry["metrics"][comparison.metrics[metric].name()] = number_or_null(comparison.means[i][metric]);
    json["rankings"].push_back(std::move(entry));
  }
  json["baseline"] = comparison.rankings[comparison.baseline].name;
  json["baseline_given"] = comparison.given_baseline;
  json["confidence"] = kConfidence;
  json["holm_family"] = family_of(comparison);
  json["holm_tests"] = comparison.differences.size();
  json["comparisons"] = ordered_json::array();
  for (const RankingDifference& difference : comparison.differences)
    json["comparisons"].push_back(difference_json(comparison, difference));
  return dump_json(json, 2) + "\n";  // names may be invalid UTF-8
}

std::string comparison_latex(const EvalComparison& comparison) {
  const std::size_t metrics = comparison.metrics.size();
  std::string text = fmt::format(
      "% Needs "
      "\\usepackage{{booktabs,amssymb}}.\n\\begin{{table}}\n\\centering\n\\small\n\\setlength{{\\tabcolsep}"
      "}{{3pt}}\n\\begin{{tabular}}{{l{}}}"
      "\n\\toprule\n"
      "ranking",
      std::string(metrics, 'r'));
  for (std::size_t metric = 0; metric < metrics; ++metric) {
    text += " & " + escape_latex(comparison.metrics[metric].title());
  }
  text += " \\\\\n\\midrule\n";
  const auto mark_of = [&](std::size_t ranking, std::size_t metric) -> std::string {
    for (const RankingDifference& difference : comparison.differences) {
      if (difference.a != ranking || difference.b != comparison.baseline || difference.metric != metric)
        continue;
      if (!difference.significant()) return "";
      const bool larger = difference.test.difference.mean > 0.0;
      return larger == comparison.metrics[metric].larger_is_better() ? "^{\\blacktriangle}"
                                                                     : "^{\\blacktriangledown}";
    }
    return "";
  };
  for (std::size_t i = 0; i < comparison.rankings.size(); ++i) {
    text += escape_latex(comparison.rankings[i].name);
    for (std::size_t metric = 0; metric < metrics; ++metric) {
      const double mean = comparison.means[i][metric];
      if (std::isnan(mean)) {
        text += " & --";
        continue;
      }
      std::string value = fmt::format("{:.{}f}", mean, digits_of(comparison.metrics[metric]));
      if (mean == comparison.means[best_by(comparison, metric)][metric])
        value = fmt::format("\\mathbf{{{}}}", value);
      text += fmt::format(" & ${}{}$", value, mark_of(i, metric));
    }
    text += " \\\\\n";
  }
  const EvalRequest& request = comparison.rankings.front().folds.front().request;
  text += fmt::format(
      "\\bottomrule\n\\end{{tabular}}\n\\caption{{Means over {} queries ({}; {}). The best value is bold. "
      "$\\blacktriangle$ and $\\blacktriangledown$: significantly better and worse than {} "
      "(paired t test over queries, level 5\\,\\%, Holm's correction over {}).}}\n"
      "\\label{{tab:rankings}}\n\\end{{table}}\n",
      queries_of(comparison), escape_latex(source_of(comparison)), escape_latex(conventions_of(request)),
      escape_latex(comparison.rankings[comparison.baseline].name), escape_latex(family_of(comparison)));
  return text;
}

}  // namespace olrank
