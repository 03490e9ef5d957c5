#include "jobs/rankings.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

#include "core/io/json.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"
#include "report/markup.h"
#include "sim/trial_settings.h"

namespace olrank {
namespace {

/// Differences below this are rounding: the same list has the same value.
constexpr double kRounding = 1e-12;

std::vector<double> values_of(const ComparedRanking& ranking, std::size_t metric) {
  std::vector<double> values;
  for (const EvalResult& fold : ranking.folds)
    values.insert(values.end(), fold.named[metric].begin(), fold.named[metric].end());
  return values;
}

double mean_of_counted(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return mean_of(values);
}

std::size_t place_of(const std::string& name, const std::vector<ComparedRanking>& rankings) {
  std::vector<std::string> names;
  names.reserve(rankings.size());
  for (const ComparedRanking& ranking : rankings) names.push_back(ranking.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw_error<InvalidArgument>("--baseline {}", must_be_one_of(name, names));
  return found - names.begin();
}

/// Every ranking has a value for the same queries.
void check_queries(const std::vector<ComparedRanking>& rankings) {
  for (const ComparedRanking& ranking : rankings) {
    for (std::size_t fold = 0; fold < ranking.folds.size(); ++fold) {
      if (ranking.folds[fold].qids != rankings.front().folds[fold].qids)
        throw_error<InvalidArgument>("'{}' and '{}' were evaluated on different queries.", ranking.name,
                                     rankings.front().name);
    }
  }
}

/// The last parts of a path: trials/RANKER/CLICKS/foldK/seedS.
std::filesystem::path last_parts(const std::filesystem::path& path, int parts) {
  return parts == 0 ? std::filesystem::path() : last_parts(path.parent_path(), parts - 1) / path.filename();
}

RankingDifference difference_of(const EvalComparison& comparison, std::size_t metric, std::size_t a,
                                std::size_t b) {
  const NamedMetric& about = comparison.metrics[metric];
  const std::vector<double> of_a = values_of(comparison.rankings[a], metric);
  const std::vector<double> of_b = values_of(comparison.rankings[b], metric);
  RankingDifference difference;
  difference.metric = metric;
  std::vector<double> differences;
  for (std::size_t query = 0; query < of_a.size(); ++query) {
    const double value = of_a[query] - of_b[query];
    if (std::isnan(value)) continue;
    differences.push_back(value);
    const double gain = about.larger_is_better() ? value : -value;
    ++(gain > kRounding ? difference.wins : gain < -kRounding ? difference.losses : difference.ties);
  }
  static_cast<PairedComparison&>(difference) = compared(a, b, {std::move(differences)}, about.name());
  difference.differences.clear();  // as many as there are queries, and no longer needed
  return difference;
}

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

/// The ranking with the best mean of a metric; the first where no ranking has one.
std::size_t best_by(const EvalComparison& comparison, std::size_t metric) {
  std::vector<double> means;
  for (const std::vector<double>& of_ranking : comparison.means) means.push_back(of_ranking[metric]);
  const std::size_t best = best_of(means, comparison.metrics[metric].larger_is_better());
  return best < means.size() ? best : 0;
}

}  // namespace

EvalComparison compare_rankings(std::vector<ComparedRanking> rankings,
                                const std::optional<std::string>& baseline, ExecutionContext& context) {
  check_queries(rankings);
  EvalComparison comparison;
  comparison.metrics = rankings.front().folds.front().request.metrics.named;
  comparison.rankings = std::move(rankings);
  const std::size_t count = comparison.rankings.size();
  for (const ComparedRanking& ranking : comparison.rankings) {
    std::vector<double>& means = comparison.means.emplace_back();
    for (std::size_t metric = 0; metric < comparison.metrics.size(); ++metric)
      means.push_back(mean_of_counted(values_of(ranking, metric)));
  }
  comparison.given_baseline = baseline.has_value();
  comparison.baseline = baseline ? place_of(*baseline, comparison.rankings) : best_by(comparison, 0);

  for (std::size_t metric = 0; metric < comparison.metrics.size(); ++metric) {
    for (std::size_t a = 0; a < count; ++a) {
      if (a != comparison.baseline)
        comparison.differences.push_back({{a, comparison.baseline, {}, {}}, metric});
    }
    for (std::size_t a = 0; a < count && !baseline; ++a) {
      for (std::size_t b = a + 1; b < count; ++b) {
        if (a != comparison.baseline && b != comparison.baseline)
          comparison.differences.push_back({{a, b, {}, {}}, metric});
      }
    }
  }
  context.for_blocks(std::ssize(comparison.differences), 1, [&](std::int64_t at, std::int64_t, int) {
    RankingDifference& difference = comparison.differences[at];
    difference = difference_of(comparison, difference.metric, difference.a, difference.b);
  });
  correct(comparison.differences);
  return comparison;
}

std::vector<std::string> ranking_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  std::vector<std::string> longer;
  for (const std::string& file : files) {
    std::filesystem::path path = std::filesystem::path(file).lexically_normal();
    if (path.filename() == "model.safetensors" || !path.has_filename()) path = path.parent_path();
    const std::optional<TrialIdentity> trial = identity_of(last_parts(path, 5));
    std::string name = trial ? trial->ranker : path.stem().string();
    if (const std::size_t place = name.find("{fold}"); place != std::string::npos) name.erase(place, 6);
    names.push_back(name.empty() ? file : name);
    longer.push_back(trial ? last_parts(path, 4).string() : file);
  }
  for (const std::vector<std::string>* others : {&std::as_const(longer), &files}) {
    const std::vector<std::string> before = names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::count(before.begin(), before.end(), before[i]) > 1) names[i] = (*others)[i];
    }
  }
  return names;
}

std::string comparison_queries_csv(const EvalComparison& comparison, std::size_t fold) {
  std::string text;
  for (const ComparedRanking& ranking : comparison.rankings) {
    const std::string& csv = ranking.folds[fold].queries_csv;
    const std::string name = csv_field(ranking.name);
    std::size_t begin = csv.find('\n') + 1;
    if (text.empty()) text = "ranking," + csv.substr(0, begin);
    for (std::size_t end = 0; begin < csv.size(); begin = end) {
      end = csv.find('\n', begin) + 1;
      text += name + "," + csv.substr(begin, end - begin);
    }
  }
  return text;
}

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

}  // namespace olrank
