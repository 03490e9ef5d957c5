#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "core/text/counted.h"
#include "core/text/nearest.h"
#include "jobs/eval_comparison.h"
#include "report/final_measures.h"
#include "report/markup.h"

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

/// Pads to a width in characters, of which each of our dashes has one.
std::string padded(const std::string& text, std::size_t width, bool right) {
  const auto length = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  const std::string space(width > length ? width - length : 0, ' ');
  return right ? space + text : text + space;
}

/// Columns as wide as their widest cell, two spaces apart; the first ones flush left.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto length =
          std::count_if(row[i].begin(), row[i].end(), [](char c) { return (c & 0xC0) != 0x80; });
      widths[i] = std::max(widths[i], static_cast<std::size_t>(length));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += (i > 0 ? "  " : "") + padded(row[i], widths[i], i >= left_columns);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
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
  if (std::isnan(interval.mean)) return "-";
  std::string text = fmt::format("{:+.{}f}", interval.mean, digits);
  if (std::isfinite(interval.half_width)) text += fmt::format(" ± {:.{}f}", interval.half_width, digits);
  return text;
}

bool significant(const RankingDifference& difference) {
  return difference.t_holm < kSignificance;
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
  std::vector<std::vector<std::string>> rows = {{"ranking"}};
  for (const NamedMetric& metric : comparison.metrics) rows[0].push_back(metric.name());
  for (std::size_t i = 0; i < comparison.rankings.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(comparison.rankings[i].name);
    for (std::size_t metric = 0; metric < comparison.metrics.size(); ++metric) {
      const double mean = comparison.means[i][metric];
      row.push_back(std::isnan(mean) ? "-"
                                     : fmt::format("{:.{}f}", mean, digits_of(comparison.metrics[metric])));
    }
  }
  text += aligned(rows, 1) + "\n";

  rows = {{"metric", "pair", "difference", "p (t)", "p (flip)", "wins/ties/losses"}};
  for (const RankingDifference& difference : comparison.differences) {
    const NamedMetric& metric = comparison.metrics[difference.metric];
    rows.push_back({metric.name(),
                    fmt::format("{} - {}", comparison.rankings[difference.a].name,
                                comparison.rankings[difference.b].name),
                    difference_text(difference, digits_of(metric)), p_text(difference.t_holm),
                    p_text(difference.flip_holm),
                    fmt::format("{}/{}/{}", difference.wins, difference.ties, difference.losses)});
  }
  text += aligned(rows, 2);
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
  std::vector<double> best;
  for (std::size_t metric = 0; metric < metrics; ++metric) {
    text += " & " + escape_latex(comparison.metrics[metric].title());
    double of_all = std::nan("");
    for (const auto& means : comparison.means) {
      const bool better =
          comparison.metrics[metric].larger_is_better() ? means[metric] > of_all : means[metric] < of_all;
      if (std::isnan(of_all) || better) of_all = means[metric];
    }
    best.push_back(of_all);
  }
  text += " \\\\\n\\midrule\n";
  const auto mark_of = [&](std::size_t ranking, std::size_t metric) -> std::string {
    for (const RankingDifference& difference : comparison.differences) {
      if (difference.a != ranking || difference.b != comparison.baseline || difference.metric != metric)
        continue;
      if (!significant(difference)) return "";
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
      if (mean == best[metric]) value = fmt::format("\\mathbf{{{}}}", value);
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
