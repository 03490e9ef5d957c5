#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"

namespace olrank {

/// Scores of a ranking made elsewhere, in the data set's order of documents.
struct ExternalScores {
  std::vector<double> scores;           // −∞ for documents that a run does not name
  std::vector<std::int64_t> retrieved;  // documents named, by query; empty for a file of scores
  std::int64_t missing_docs = 0;        // not named
  std::int64_t missing_queries = 0;     // not named at all
};

/// One number a line, one line a document in the data set's order. Blank lines and lines that begin with
/// '#' are passed over. Not-a-number, a line with anything else, and a count that is not the number of
/// documents are DataErrors with file and line; infinities are scores.
ExternalScores read_scores(const std::filesystem::path& file, const Dataset& data);
ExternalScores parse_scores(std::string_view text, const std::string& file, const Dataset& data);

/// A TREC run: lines of `qid Q0 docno rank score tag`, in any order; blank lines are passed over. The rank
/// column is not read: order comes from the scores. A document goes by its name or, without one, by its
/// index within the query, from 0. Unknown queries and documents, a document named twice, and scores that
/// are not finite are DataErrors with file and line.
ExternalScores read_trec_run(const std::filesystem::path& file, const Dataset& data);
ExternalScores parse_trec_run(std::string_view text, const std::string& file, const Dataset& data);

}  // namespace olrank
