#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/dataset.h"
#include "core/metrics/score_files.h"

namespace olrank {

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
Qrels read_qrels(const std::filesystem::path& file);
Qrels parse_qrels(std::string_view text, const std::string& file);

/// A run over judged queries. The data set has no features; a query's documents are the judged ones and
/// then, with grade 0, those that only the run names.
struct JudgedRun {
  Dataset data;
  ExternalScores scores;
  std::int64_t unjudged_docs = 0;    // named by the run for a judged query
  std::int64_t ignored_queries = 0;  // named by the run and not judged
};

/// A TREC run as read_trec_run() takes it. As in trec_eval, queries that are not judged are ignored.
JudgedRun read_judged_run(const std::filesystem::path& file, const Qrels& qrels);
JudgedRun parse_judged_run(std::string_view text, const std::string& file, const Qrels& qrels);

}  // namespace olrank
