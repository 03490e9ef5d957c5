#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/text_lines.h"
#include "core/metrics/evaluator.h"

namespace olrank {

/// Scores from another program, in the data set's document order.
struct ExternalScores {
  std::vector<double> scores;           // −∞ for documents that a run does not name
  std::vector<std::int64_t> retrieved;  // documents named, by query; empty for a file of scores
  std::int64_t missing_docs = 0;        // not named
  std::int64_t missing_queries = 0;     // of which no document is named
};

/// One number per line, one line per document, in the data set's order. Blank lines and lines that begin
/// with '#' are skipped. NaN, a line with anything else, and a wrong number of scores are DataErrors with
/// file and line; infinities are valid scores.
ExternalScores read_scores(TextLines lines, const Dataset& data);

/// A TREC run: lines `qid Q0 docno rank score tag`, in any order; blank lines are skipped. The rank column
/// is ignored: the scores determine the order. docno is the document's name or, without one, its index
/// within the query, from 0. Unknown queries and documents, duplicate documents, and scores that are not
/// finite are DataErrors with file and line.
ExternalScores read_trec_run(TextLines lines, const Dataset& data);

/// TREC judgements: grades of named documents, by query, in the order of the file.
struct Qrels {
  struct Query {
    std::string qid;
    std::vector<std::string> docs;
    std::vector<std::uint8_t> grades;
  };
  std::vector<Query> queries;
  std::unordered_map<std::string, std::int64_t> by_qid;
};

/// Lines `qid iteration docno grade`; blank lines are skipped, and a query's lines may lie anywhere.
/// Negative grades count as 0. DataErrors with file and line: another number of fields, other grades, a
/// document that is judged twice, and a file without a judgement.
Qrels read_qrels(TextLines lines);

/// A run over judged queries. The data set has no features; a query's documents are the judged ones and
/// then, with grade 0, those that only the run names.
struct JudgedRun {
  Dataset data;
  ExternalScores scores;
  std::int64_t unjudged_docs = 0;    // named by the run for a judged query
  std::int64_t ignored_queries = 0;  // named by the run and not judged
};

/// A TREC run as read_trec_run() takes it. As in trec_eval, queries that are not judged are ignored.
JudgedRun read_judged_run(TextLines lines, const Qrels& qrels);

/// A metric's name, such as "ndcg@10", and its value.
using NamedValues = std::vector<std::pair<std::string, double>>;

/// The means of an evaluation in the order in which `olrank eval` shows them.
NamedValues named_values(const MetricOptions& options, const MetricReport& report);
/// Returns the values of one query in that order.
NamedValues named_values(const MetricOptions& options, const QueryMetrics& query);

/// The metrics of every query in `evaluator`'s last evaluation, which must be of `data`: a header
/// `qid,docs,ndcg@K,…,map,mrr,p@10,err@10,arp,pairs` and one line per query, in the data's order. `pairs`
/// counts mis-ordered pairs. A field is empty if the query is excluded from that mean. Numbers read back
/// exactly.
std::string per_query_csv(const Dataset& data, const Evaluator& evaluator);

/// Only `qid,ndcg@K,…` of the same.
std::string query_ndcg_csv(const Dataset& data, const Evaluator& evaluator);

}  // namespace olrank
