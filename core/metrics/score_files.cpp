#include "core/metrics/score_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <string_view>

#include "core/data/join.h"
#include "core/math/dcg.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// A number of the current line; infinities are valid. Throws DataError for anything else and for NaN.
double parse_score(std::string_view word, const TextLines& lines) {
  const std::string_view digits = word.substr(word.size() > 1 && word[0] == '+' && word[1] != '-' ? 1 : 0);
  double score = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), score);
  if (error == std::errc::result_out_of_range)
    lines.fail(word, "The score {} is out of range for a double.", quoted(word));
  if (error != std::errc() || end != digits.data() + digits.size())
    lines.fail(word, "{} is not a number.", quoted(word));
  if (std::isnan(score)) lines.fail(word, "The score is NaN; documents cannot be ranked by it.");
  return score;
}

/// A line `qid Q0 docno rank score tag` of a TREC run.
struct RunLine {
  std::string_view qid;
  std::string_view docno;
  double score = 0.0;
};

/// The current line. Throws DataError for another number of fields and scores that are not finite.
RunLine parse_run_line(const TextLines& lines) {
  const auto [query, iteration, docno, rank, score_word, tag] =
      lines.fields<6>("a run must be 'qid Q0 docno rank score tag'");
  const double score = parse_score(score_word, lines);
  if (!std::isfinite(score)) lines.fail(score_word, "The scores of a run must be finite.");
  return {query, docno, score};
}

/// The line of each document of a query, for messages about a second one.
using LinesOfDocs = std::unordered_map<std::string, std::int64_t>;

void refuse_second(const TextLines& lines, std::string_view docno, std::string_view qid, std::int64_t first,
                   std::string_view verb) {
  lines.fail(docno, "Document {} of query {} is already {} on line {}.", quoted(docno), quoted(qid), verb,
             first);
}

/// The documents of one query: judged, then others.
struct QueryDocuments {
  std::vector<double> scores;  // −∞ where the run has none
  std::vector<std::string> unjudged;
  std::unordered_map<std::string, std::int64_t> place;
  LinesOfDocs line_of;
};

Dataset dataset_of(const Qrels& qrels, const std::vector<QueryDocuments>& documents) {
  struct Memory {
    std::vector<std::uint8_t> grades;
    std::vector<std::int64_t> offsets{0};
    std::string names;
    std::vector<std::uint64_t> name_ends;
  };
  auto memory = std::make_shared<Memory>();
  Dataset::Contents contents;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const Qrels::Query& query = qrels.queries[i];
    contents.qids.push_back(query.qid);
    for (const auto* names : {&query.docs, &documents[i].unjudged}) {
      for (const std::string& name : *names) {
        memory->names += name;
        memory->name_ends.push_back(memory->names.size());
      }
    }
    memory->grades.insert(memory->grades.end(), query.grades.begin(), query.grades.end());
    memory->grades.resize(memory->grades.size() + documents[i].unjudged.size(), 0);
    memory->offsets.push_back(std::ssize(memory->grades));
  }
  contents.grades = memory->grades;
  contents.offsets = memory->offsets;
  contents.doc_names = {memory->names, memory->name_ends};
  contents.memory = memory;
  return Dataset(std::move(contents));
}

template <class Metrics>
NamedValues values_of(const MetricOptions& options, const Metrics& metrics) {
  NamedValues values;
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i)
    values.emplace_back(fmt::format("ndcg@{}", options.cutoffs[i]), metrics.ndcg[i]);
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i)
    values.emplace_back(fmt::format("dcg@{}", options.cutoffs[i]), metrics.dcg[i]);
  values.emplace_back("map", metrics.map);
  values.emplace_back("mrr", metrics.mrr);
  values.emplace_back(fmt::format("p@{}", options.precision_cutoff), metrics.precision);
  values.emplace_back(fmt::format("err@{}", options.err_cutoff), metrics.err);
  values.emplace_back("arp", metrics.arp);
  values.emplace_back("pair_accuracy", metrics.pair_accuracy);
  for (std::size_t i = 0; i < options.named.size(); ++i) {
    const std::string name = options.named[i].name();
    const bool there =
        std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
    if (!there) values.emplace_back(name, metrics.named[i]);
  }
  return values;
}

}  // namespace

ExternalScores read_scores(TextLines lines, const Dataset& data) {
  ExternalScores read;
  read.scores.reserve(data.docs());
  while (lines.next()) {
    std::string_view rest = lines.line();
    const std::string_view word = take_word(rest);
    if (word.empty() || word.front() == '#') continue;
    const double score = parse_score(word, lines);
    if (const std::string_view more = take_word(rest); !more.empty())
      lines.fail(more, "A line must have one score, but {} follows it.", quoted(more));
    if (std::ssize(read.scores) == data.docs()) {
      lines.fail(word, "This score has no document: the data has {} documents.", data.docs());
    }
    read.scores.push_back(score);
  }
  if (std::ssize(read.scores) != data.docs()) {
    throw_data_error(lines.file(), 0, 0,
                     "The file has {} scores, but the data has {} documents; each document needs one.",
                     read.scores.size(), data.docs());
  }
  return read;
}

ExternalScores read_trec_run(TextLines lines, const Dataset& data) {
  DocFinder docs(data);
  std::unordered_map<std::string_view, std::int64_t> queries;
  queries.reserve(data.queries());
  for (std::int64_t query = 0; query < data.queries(); ++query) queries.emplace(data.qid(query), query);
  ExternalScores run;
  run.scores.assign(data.docs(), -std::numeric_limits<double>::infinity());
  run.retrieved.resize(data.queries());
  std::vector<std::int64_t> line_of(data.docs());  // 0 without one
  while (lines.next()) {
    if (lines.blank()) continue;
    const RunLine line = parse_run_line(lines);
    const auto known = queries.find(line.qid);
    if (known == queries.end()) lines.fail(line.qid, "The data has no query {}.", quoted(line.qid));
    const std::int64_t query = known->second;
    const std::int32_t doc = docs.by_label(query, line.docno);
    if (doc == DocFinder::kUnknown)
      lines.fail(line.docno, "Query {} has no document {}.", quoted(line.qid), quoted(line.docno));
    if (doc == DocFinder::kAmbiguous) {
      lines.fail(line.docno, "Query {} has several documents named {}, which a run cannot distinguish.",
                 quoted(line.qid), quoted(line.docno));
    }
    const std::int64_t place = data.offset(query) + doc;
    if (line_of[place] > 0) {
      lines.fail(line.docno, "Document {} of query {} is already on line {}.", quoted(line.docno),
                 quoted(line.qid), line_of[place]);
    }
    line_of[place] = lines.number();
    run.scores[place] = line.score;
    ++run.retrieved[query];
  }
  run.missing_docs = std::count(line_of.begin(), line_of.end(), 0);
  run.missing_queries = std::count(run.retrieved.begin(), run.retrieved.end(), 0);
  return run;
}

Qrels read_qrels(TextLines lines) {
  Qrels qrels;
  std::vector<LinesOfDocs> line_of;
  while (lines.next()) {
    if (lines.blank()) continue;
    const auto [qid, iteration, docno, word] = lines.fields<4>("judgements must be 'qid 0 docno grade'");
    int grade = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), grade);
    const bool whole = error == std::errc() && end == word.data() + word.size();
    if (!whole || grade > kHighestGrade)
      lines.fail(word, "The grade must be an integer of at most {}, not {}.", kHighestGrade, quoted(word));
    const auto [known, is_new] = qrels.by_qid.try_emplace(std::string(qid), std::ssize(qrels.queries));
    if (is_new) {
      qrels.queries.push_back({std::string(qid), {}, {}});
      line_of.emplace_back();
    }
    const auto [first, unseen] = line_of[known->second].try_emplace(std::string(docno), lines.number());
    if (!unseen) refuse_second(lines, docno, qid, first->second, "judged");
    Qrels::Query& query = qrels.queries[known->second];
    query.docs.emplace_back(docno);
    query.grades.push_back(static_cast<std::uint8_t>(std::max(grade, 0)));  // negative ones mark junk
  }
  if (qrels.queries.empty())
    throw DataError(lines.file(), 0, 0, "The file has no judgement: lines must be 'qid 0 docno grade'.");
  return qrels;
}

JudgedRun read_judged_run(TextLines lines, const Qrels& qrels) {
  constexpr double kMissing = -std::numeric_limits<double>::infinity();
  std::vector<QueryDocuments> documents(qrels.queries.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::vector<std::string>& judged = qrels.queries[i].docs;
    documents[i].scores.assign(judged.size(), kMissing);
    for (std::size_t doc = 0; doc < judged.size(); ++doc)
      documents[i].place.emplace(judged[doc], static_cast<std::int64_t>(doc));
  }
  ExternalScores read;
  read.retrieved.resize(qrels.queries.size());
  std::set<std::string> ignored;
  std::int64_t unjudged = 0;
  while (lines.next()) {
    if (lines.blank()) continue;
    const RunLine line = parse_run_line(lines);
    const auto known = qrels.by_qid.find(std::string(line.qid));
    if (known == qrels.by_qid.end()) {
      ignored.emplace(line.qid);
      continue;
    }
    QueryDocuments& query = documents[known->second];
    const std::string docno(line.docno);
    const auto [first, unseen] = query.line_of.try_emplace(docno, lines.number());
    if (!unseen) refuse_second(lines, line.docno, line.qid, first->second, "listed");
    ++read.retrieved[known->second];
    if (const auto judged = query.place.find(docno); judged != query.place.end()) {
      query.scores[judged->second] = line.score;
    } else {
      query.unjudged.push_back(docno);
      query.scores.push_back(line.score);
      ++unjudged;
    }
  }
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const QueryDocuments& query = documents[i];
    read.scores.insert(read.scores.end(), query.scores.begin(), query.scores.end());
    read.missing_docs += std::ssize(query.scores) - read.retrieved[i];
    read.missing_queries += read.retrieved[i] == 0 ? 1 : 0;
  }
  return {dataset_of(qrels, documents), std::move(read), unjudged, std::ssize(ignored)};
}

NamedValues named_values(const MetricOptions& options, const MetricReport& report) {
  return values_of(options, report);
}

NamedValues named_values(const MetricOptions& options, const QueryMetrics& query) {
  return values_of(options, query);
}

std::string per_query_csv(const Dataset& data, const Evaluator& evaluator) {
  const MetricOptions& options = evaluator.options();
  std::string text = "qid,docs";
  for (const std::int64_t cutoff : options.cutoffs) text += fmt::format(",ndcg@{}", cutoff);
  text += fmt::format(",map,mrr,p@{},err@{},arp,pairs\n", options.precision_cutoff, options.err_cutoff);
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const QueryMetrics metrics = evaluator.of_query(query);
    text += csv_field(data.qid(query));
    fmt::format_to(std::back_inserter(text), ",{}", data.docs_of(query));
    for (const double ndcg : metrics.ndcg) text += "," + csv_number(ndcg);
    for (const double value : {metrics.map, metrics.mrr, metrics.precision, metrics.err, metrics.arp}) {
      text += "," + csv_number(value);
    }
    fmt::format_to(std::back_inserter(text), ",{}\n", metrics.misordered_pairs);
  }
  return text;
}

std::string query_ndcg_csv(const Dataset& data, const Evaluator& evaluator) {
  std::string text = "qid";
  for (const std::int64_t cutoff : evaluator.options().cutoffs) text += fmt::format(",ndcg@{}", cutoff);
  text += '\n';
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    text += csv_field(data.qid(query));
    for (const double ndcg : evaluator.of_query(query).ndcg) text += "," + csv_number(ndcg);
    text += '\n';
  }
  return text;
}

}  // namespace olrank
