#include "core/metrics/score_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "core/data/doc_finder.h"
#include "core/error.h"

namespace olrank {
namespace {

/// A number of the current line; infinities are valid. Throws DataError for anything else and for NaN.
double parse_score(std::string_view word, const TextLines& lines) {
  const std::string_view digits = word.substr(word.size() > 1 && word[0] == '+' && word[1] != '-' ? 1 : 0);
  double score = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), score);
  if (error == std::errc::result_out_of_range)
    lines.fail(word, fmt::format("The score {} is out of range for a double.", quoted(word)));
  if (error != std::errc() || end != digits.data() + digits.size())
    lines.fail(word, fmt::format("{} is not a number.", quoted(word)));
  if (std::isnan(score)) lines.fail(word, "The score is NaN; documents cannot be ranked by it.");
  return score;
}

/// Puts the lines of a run to their documents.
class RunReader {
 public:
  explicit RunReader(const Dataset& data) : data_(data), docs_(data) {
    queries_.reserve(data.queries());
    for (std::int64_t query = 0; query < data.queries(); ++query) queries_.emplace(data.qid(query), query);
    run_.scores.assign(data.docs(), -std::numeric_limits<double>::infinity());
    run_.retrieved.resize(data.queries());
    line_of_.resize(data.docs());
  }

  void add(const TextLines& lines) {
    const RunLine line = parse_run_line(lines);
    const auto known = queries_.find(line.qid);
    if (known == queries_.end())
      lines.fail(line.qid, fmt::format("The data has no query {}.", quoted(line.qid)));
    const std::int64_t query = known->second;
    const std::int32_t doc = docs_.by_label(query, line.docno);
    if (doc == DocFinder::kUnknown)
      lines.fail(line.docno,
                 fmt::format("Query {} has no document {}.", quoted(line.qid), quoted(line.docno)));
    if (doc == DocFinder::kAmbiguous) {
      lines.fail(line.docno,
                 fmt::format("Query {} has several documents named {}, which a run cannot distinguish.",
                             quoted(line.qid), quoted(line.docno)));
    }
    const std::int64_t place = data_.offset(query) + doc;
    if (line_of_[place] > 0) {
      lines.fail(line.docno, fmt::format("Document {} of query {} is already on line {}.",
                                         quoted(line.docno), quoted(line.qid), line_of_[place]));
    }
    line_of_[place] = lines.number();
    run_.scores[place] = line.score;
    ++run_.retrieved[query];
  }

  ExternalScores finish() {
    const auto& retrieved = run_.retrieved;
    run_.missing_docs = data_.docs() - std::accumulate(retrieved.begin(), retrieved.end(), std::int64_t{0});
    run_.missing_queries = std::count(retrieved.begin(), retrieved.end(), std::int64_t{0});
    return std::move(run_);
  }

 private:
  const Dataset& data_;
  DocFinder docs_;
  std::unordered_map<std::string_view, std::int64_t> queries_;
  std::vector<std::int64_t> line_of_;  // by document, 0 without one
  ExternalScores run_;
};

ExternalScores scores_in(TextLines lines, const Dataset& data) {
  ExternalScores read;
  read.scores.reserve(data.docs());
  while (lines.next()) {
    std::string_view rest = lines.line();
    const std::string_view word = take_word(rest);
    if (word.empty() || word.front() == '#') continue;
    const double score = parse_score(word, lines);
    if (const std::string_view more = take_word(rest); !more.empty())
      lines.fail(more, fmt::format("A line must have one score, but {} follows it.", quoted(more)));
    if (std::ssize(read.scores) == data.docs()) {
      lines.fail(word, fmt::format("This score has no document: the data has {} documents.", data.docs()));
    }
    read.scores.push_back(score);
  }
  if (std::ssize(read.scores) != data.docs()) {
    throw DataError(
        lines.file(), 0, 0,
        fmt::format("The file has {} scores, but the data has {} documents; each document needs one.",
                    read.scores.size(), data.docs()));
  }
  return read;
}

ExternalScores run_in(TextLines lines, const Dataset& data) {
  RunReader reader(data);
  while (lines.next()) {
    if (!lines.blank()) reader.add(lines);
  }
  return reader.finish();
}

}  // namespace

ExternalScores parse_scores(std::string_view text, const std::string& file, const Dataset& data) {
  return scores_in(TextLines::of_memory(text, file), data);
}

ExternalScores parse_trec_run(std::string_view text, const std::string& file, const Dataset& data) {
  return run_in(TextLines::of_memory(text, file), data);
}

ExternalScores read_scores(const std::filesystem::path& file, const Dataset& data) {
  return scores_in(TextLines::of_file(file), data);
}

ExternalScores read_trec_run(const std::filesystem::path& file, const Dataset& data) {
  return run_in(TextLines::of_file(file), data);
}

RunLine parse_run_line(const TextLines& lines) {
  const auto [query, iteration, docno, rank, score_word, tag] =
      lines.fields<6>("a run must be 'qid Q0 docno rank score tag'");
  const double score = parse_score(score_word, lines);
  if (!std::isfinite(score)) lines.fail(score_word, "The scores of a run must be finite.");
  return {query, docno, score};
}

}  // namespace olrank
