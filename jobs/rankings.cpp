#include "jobs/rankings.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/data/doc_table.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/metrics/list_metrics.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

ordered_json as_json(const EvalResult& result) {
  const EvalRequest& request = result.request;
  const MetricReport& report = result.report;
  const MetricOptions& options = request.metrics;
  ordered_json metrics;
  for (const auto& [name, mean] : named_values(options, report)) {
    metrics[name] = number_or_null(mean);
  }
  metrics["misordered_pairs"] = report.misordered_pairs;
  metrics["pairs"] = report.pairs;
  ordered_json answer;
  if (request.qrels.empty()) {
    answer = {{"data", request.data}, {"fold", request.fold}, {"part", request.part}};
  } else {
    answer = {{"qrels", request.qrels}};
  }
  answer.update({{"queries", report.queries},
                 {"docs", report.docs},
                 {"empty_queries", report.empty_queries},
                 {"pairless_queries", report.pairless_queries},
                 {"conventions", conventions_json(request, report.max_grade)},
                 {"metrics", metrics}});
  if (!request.run.empty()) {
    answer["run"] = {{"missing_docs", result.missing_docs}, {"missing_queries", result.missing_queries}};
    if (!request.qrels.empty()) {
      answer["run"]["unjudged_docs"] = result.unjudged_docs;
      answer["run"]["ignored_queries"] = result.ignored_queries;
    }
  }
  return answer;
}

/// How queries without a relevant document count, in words.
std::string empty_queries_text(const EvalResult& result) {
  const EmptyQueries rule = result.request.metrics.empty_queries;
  return fmt::format("{} without a relevant document, {}", result.report.empty_queries,
                     rule == EmptyQueries::kZero  ? "counted as 0"
                     : rule == EmptyQueries::kOne ? "counted as 1"
                                                  : "skipped");
}

std::string as_table(const EvalResult& result) {
  const EvalRequest& request = result.request;
  const MetricReport& report = result.report;
  std::string table;
  const auto add_row = [&](std::string_view name, std::string_view value) {
    table += fmt::format("{:<17} {}\n", name, value);
  };
  if (request.qrels.empty()) {
    add_row("data", fmt::format("{}, fold {}, {}", request.data, request.fold, request.part));
  } else {
    add_row("judgements", request.qrels);
  }
  add_row("queries", fmt::format("{} with {} documents", report.queries, report.docs));
  add_row("empty queries", empty_queries_text(result));
  if (!request.run.empty()) {
    const bool lost = request.metrics.unretrieved == Unretrieved::kLost;
    add_row("not in the run", fmt::format("{} documents, {}; queries without any: {}", result.missing_docs,
                                          lost ? "counted as never shown" : "ranked last in index order",
                                          result.missing_queries));
  }
  if (!request.qrels.empty()) {
    add_row("not judged", fmt::format("{} documents of the run, counted as grade 0; queries, ignored: {}",
                                      result.unjudged_docs, result.ignored_queries));
  }
  add_row("convention", conventions_of(request));
  for (const auto& [name, mean] : named_values(request.metrics, report)) {
    add_row(name, std::isnan(mean) ? "undefined: no query counts" : fmt::format("{:.6f}", mean));
  }
  add_row("misordered_pairs", fmt::format("{} of {}", report.misordered_pairs, report.pairs));
  add_row("max_grade", fmt::format("{} (for ERR)", report.max_grade));
  return table;
}

/// Unweighted means over folds; undefined if no query counts in some fold.
std::vector<std::pair<std::string, double>> means_over(std::span<const EvalResult> folds) {
  auto means = named_values(folds.front().request.metrics, folds.front().report);
  for (const EvalResult& fold : folds.subspan(1)) {
    const auto more = named_values(fold.request.metrics, fold.report);
    for (std::size_t i = 0; i < means.size(); ++i) means[i].second += more[i].second;
  }
  for (auto& [name, mean] : means) mean /= static_cast<double>(folds.size());
  return means;
}

ExternalScores scores_of(const EvalRequest& request, const Dataset& data, ExecutionContext& context) {
  if (!request.run.empty()) return read_trec_run(TextLines::of_file(request.run), data);
  if (!request.scores.empty()) return read_scores(TextLines::of_file(request.scores), data);
  const std::filesystem::path file = model_file_of(request.model);
  const ModelScorer scorer(load_model(file, code_if(request.trust_code)));
  warn_of_fewer_features(request.data, data.features(), scorer.features());
  warn_of_missing_names(request.data, data, scorer.model());
  ExternalScores scores;
  scores.scores =
      scores_of_all(scorer, fitted_to_model(data, scorer.model(), request.data, context), context);
  for (std::size_t doc = 0; doc < scores.scores.size(); ++doc) {
    if (!std::isfinite(scores.scores[doc])) {
      throw_error<NumericError>("{} gives document {} of '{}' a score that is not finite.", file.string(),
                                doc, request.data);
    }
  }
  return scores;
}

EvalResult evaluated(const EvalRequest& request, const Dataset& data, const ExternalScores& scores,
                     ExecutionContext& context) {
  Evaluator evaluator(request.metrics);
  EvalResult result;
  result.request = request;
  result.report = evaluator.evaluate(data, scores.scores, context, scores.retrieved);
  result.missing_docs = scores.missing_docs;
  result.missing_queries = scores.missing_queries;
  if (!request.per_query.empty()) write_file_atomically(request.per_query, per_query_csv(data, evaluator));
  if (!request.keep_queries) return result;
  result.queries_csv = per_query_csv(data, evaluator);
  result.named.resize(request.metrics.named.size());
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    result.qids.emplace_back(data.qid(query));
    const QueryMetrics metrics = evaluator.of_query(query);
    for (std::size_t i = 0; i < result.named.size(); ++i) result.named[i].push_back(metrics.named[i]);
  }
  return result;
}

constexpr std::int64_t kDocsPerTask = 256;
constexpr std::size_t kTasksPerTurn = 256;  // bounds the memory held by unwritten text

template <class Number>
void append_number(std::string& text, Number number) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_run_line(std::string& text, std::string_view qid, std::string_view docno, std::int64_t rank,
                     double score) {
  text += qid;
  text += " Q0 ";
  text += docno;
  text += ' ';
  append_number(text, rank);
  text += ' ';
  append_number(text, score);
  text += " olrank\n";
}

/// Scores and writes a range of queries on one thread.
void write_range(const ModelScorer& scorer, ListFormat format, const Dataset& data, QueryRange range,
                 Scratch& scratch, std::string& text) {
  const Scratch::Frame frame(scratch);
  const std::int64_t first = data.offset(range.begin);
  const std::int64_t docs = data.offset(range.end) - first;
  const auto all = scratch.take<double>(docs);
  scorer.score(scratch, data.all_rows().part(first, first + docs),
               data.offsets().subspan(range.begin, static_cast<std::size_t>(range.end - range.begin) + 1),
               all, names_of(data, range.begin));
  for (std::int64_t query = range.begin; query < range.end; ++query) {
    const auto scores = all.subspan(data.offset(query) - first, data.docs_of(query));
    if (!std::all_of(scores.begin(), scores.end(), [](double score) { return std::isfinite(score); })) {
      throw_error<NumericError>(
          "A document of query {} has a score that is not finite: the model's parameters are out of range, "
          "or the features differ too much from the training data.",
          data.qid(query));
    }
    if (format == ListFormat::kScores) {
      for (const double score : scores) {
        append_number(text, score);
        text += '\n';
      }
      continue;
    }
    const Scratch::Frame frame_of_order(scratch);
    const auto order = scratch.take<std::int32_t>(scores.size());
    order_by_score(scores, order, scratch);
    std::int64_t rank = 0;
    for (const std::int32_t doc : order)
      append_run_line(text, data.qid(query), DocLabel(data, query, doc).view(), ++rank, scores[doc]);
  }
}

}  // namespace

std::string conventions_of(const EvalRequest& request) {
  const std::string overridden =
      request.overrides.empty() ? "" : fmt::format(" with {}", joined(request.overrides));
  return fmt::format("{}{}: {}", name_of(request.convention), overridden,
                     describe_conventions(request.metrics));
}

ordered_json conventions_json(const EvalRequest& request, int max_grade) {
  const MetricOptions& options = request.metrics;
  return {{"convention", name_of(request.convention)},
          {"overrides", request.overrides},
          {"gain", name_of(options.gain)},
          {"discount", name_of(options.discount)},
          {"ties", name_of(options.ties)},
          {"empty_queries", name_of(options.empty_queries)},
          {"short_lists", name_of(options.short_lists)},
          {"unretrieved", name_of(options.unretrieved)},
          {"max_grade", max_grade}};
}

EvalResult evaluate_judged_run(const EvalRequest& request, const Qrels& qrels, ExecutionContext& context) {
  const JudgedRun run = read_judged_run(TextLines::of_file(request.run), qrels);
  EvalResult result = evaluated(request, run.data, run.scores, context);
  result.unjudged_docs = run.unjudged_docs;
  result.ignored_queries = run.ignored_queries;
  return result;
}

EvalResult evaluate_ranking(const EvalRequest& request, const Dataset& data, ExecutionContext& context) {
  if (!request.scores.empty() && data.reordered()) {
    throw_error<InvalidArgument>(
        "The lines of some queries in '{}' are not contiguous, so scores cannot be matched to documents by "
        "line; give a TREC run (--run), or scores for the output of 'olrank data convert'.",
        request.data);
  }
  return evaluated(request, data, scores_of(request, data, context), context);
}

std::string eval_table(std::span<const EvalResult> folds) {
  std::string text;
  for (const EvalResult& fold : folds) text += (text.empty() ? "" : "\n") + as_table(fold);
  if (folds.size() < 2) return text;
  text += fmt::format("\nmean over {} folds\n", folds.size());
  for (const auto& [name, mean] : means_over(folds)) {
    text += fmt::format("{:<17} {}\n", name, std::isnan(mean) ? "undefined" : fmt::format("{:.6f}", mean));
  }
  return text;
}

std::string eval_json(std::span<const EvalResult> folds) {
  if (folds.size() == 1) return as_json(folds.front()).dump(2) + "\n";
  ordered_json answers = ordered_json::array();
  for (const EvalResult& fold : folds) answers.push_back(as_json(fold));
  ordered_json mean;
  for (const auto& [name, value] : means_over(folds)) {
    mean[name] = number_or_null(value);
  }
  return ordered_json{{"folds", answers}, {"mean", mean}}.dump(2) + "\n";
}

void write_judgements(const Dataset& data, const TextSink& sink) {
  std::string text;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    text.clear();
    std::int64_t doc = 0;
    for (const std::uint8_t grade : data.grades_of(query)) {
      text += data.qid(query);
      text += " 0 ";
      text += DocLabel(data, query, doc++).view();
      text += ' ';
      append_number(text, static_cast<int>(grade));
      text += '\n';
    }
    sink(text);
  }
}

void write_ranked(const ModelScorer& scorer, ListFormat format, const Dataset& data,
                  ExecutionContext& context, const TextSink& sink) {
  const std::vector<QueryRange> ranges = query_ranges(data, kDocsPerTask);
  std::vector<std::string> texts(std::min(ranges.size(), kTasksPerTurn));
  for (std::size_t begin = 0; begin < ranges.size(); begin += kTasksPerTurn) {
    const std::size_t count = std::min(kTasksPerTurn, ranges.size() - begin);
    context.for_blocks(
        static_cast<std::int64_t>(count), 1, [&](std::int64_t number, std::int64_t, int worker) {
          const auto at = static_cast<std::size_t>(number);
          texts[at].clear();
          write_range(scorer, format, data, ranges[begin + at], context.scratch(worker), texts[at]);
        });
    for (std::size_t at = 0; at < count; ++at) sink(texts[at]);
  }
}

}  // namespace olrank
