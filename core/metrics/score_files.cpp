#include "core/metrics/score_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/metrics/doc_label.h"

namespace olrank {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

/// The lines of a text, counted from 1.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    return true;
  }
  std::string_view line() const { return line_; }
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::string_view line_;
  std::int64_t number_ = 0;
};

/// Removes the first word from `line` and returns it; empty if there is none.
std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

/// A short, printable excerpt of the file.
std::string quoted(std::string_view word) {
  constexpr std::size_t kShown = 40;
  std::string shown;
  for (const char c : word.substr(0, kShown)) shown += c >= ' ' && c != '\x7F' ? c : '?';
  return fmt::format("'{}{}'", shown, word.size() > kShown ? "..." : "");
}

struct WordPlace {
  const std::string& file;
  std::int64_t line;
  std::int64_t column;
};

double parse_score(std::string_view word, const WordPlace& place) {
  const std::string_view digits = word.substr(word.size() > 1 && word[0] == '+' && word[1] != '-' ? 1 : 0);
  double score = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), score);
  if (error == std::errc::result_out_of_range) {
    throw DataError(place.file, place.line, place.column,
                    fmt::format("The score {} is out of range for a double.", quoted(word)));
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw DataError(place.file, place.line, place.column, fmt::format("{} is not a number.", quoted(word)));
  }
  if (std::isnan(score)) {
    throw DataError(place.file, place.line, place.column,
                    "The score is NaN; documents cannot be ranked by it.");
  }
  return score;
}

std::int64_t column_of(std::string_view word, std::string_view line) {
  return word.data() - line.data() + 1;
}

struct RunLine {
  std::string_view docno;
  double score;
  std::int64_t line;
  std::int64_t column;  // of docno
};

using QueryLines = std::vector<std::vector<RunLine>>;  // by query

RunLine parse_run_line(std::string_view line, const std::string& file, std::int64_t number,
                       std::string_view& qid) {
  std::string_view rest = line;
  std::array<std::string_view, 6> words;
  std::size_t count = 0;
  auto wrong = std::ssize(line) + 1;  // column of the missing or surplus field
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (count < words.size()) words[count] = word;
    if (count == words.size()) wrong = column_of(word, line);
    ++count;
  }
  if (count != words.size()) {
    throw DataError(
        file, number, wrong,
        fmt::format("A line of a run must be 'qid Q0 docno rank score tag', but this line has {} fields.",
                    count));
  }
  const auto& [query, iteration, docno, rank, score_word, tag] = words;
  qid = query;
  const double score = parse_score(score_word, {file, number, column_of(score_word, line)});
  if (!std::isfinite(score)) {
    throw DataError(file, number, column_of(score_word, line), "The scores of a run must be finite.");
  }
  return {docno, score, number, column_of(docno, line)};
}

QueryLines lines_by_query(std::string_view text, const std::string& file, const Dataset& data) {
  std::unordered_map<std::string_view, std::int64_t> queries;
  queries.reserve(data.queries());
  for (std::int64_t query = 0; query < data.queries(); ++query) queries.emplace(data.qid(query), query);
  QueryLines lines_of(static_cast<std::size_t>(data.queries()));
  for (Lines lines(text); lines.next();) {
    if (lines.line().find_first_not_of(kBlanks) == std::string_view::npos) continue;
    std::string_view qid;
    const RunLine line = parse_run_line(lines.line(), file, lines.number(), qid);
    const auto query = queries.find(qid);
    if (query == queries.end()) {
      throw DataError(file, lines.number(), column_of(qid, lines.line()),
                      fmt::format("The data has no query {}.", quoted(qid)));
    }
    lines_of[query->second].push_back(line);
  }
  return lines_of;
}

/// Finds a query's documents by their names in runs.
class DocFinder {
 public:
  static constexpr std::int64_t kUnknown = -1;
  static constexpr std::int64_t kAmbiguous = -2;

  DocFinder(const Dataset& data, std::int64_t query) {
    for (std::int64_t doc = 0; doc < data.docs_of(query); ++doc) {
      const auto [known, inserted] = docs_.emplace(DocLabel(data, query, doc).view(), doc);
      if (!inserted) known->second = kAmbiguous;
    }
  }
  std::int64_t find(std::string_view docno) const {
    const auto known = docs_.find(std::string(docno));
    return known == docs_.end() ? kUnknown : known->second;
  }

 private:
  std::unordered_map<std::string, std::int64_t> docs_;
};

/// The first mistake in the file, independent of the order in which lines are checked.
class FirstMistake {
 public:
  void note(const RunLine& line, std::string sentence) {
    if (sentence_ && line.line > line_) return;
    line_ = line.line;
    column_ = line.column;
    sentence_ = std::move(sentence);
  }
  void throw_if_any(const std::string& file) const {
    if (sentence_) throw DataError(file, line_, column_, *sentence_);
  }

 private:
  std::int64_t line_ = 0;
  std::int64_t column_ = 0;
  std::optional<std::string> sentence_;
};

void place_query(const std::vector<RunLine>& lines, const Dataset& data, std::int64_t query,
                 ExternalScores& run, FirstMistake& mistake) {
  const DocFinder finder(data, query);
  std::unordered_map<std::int64_t, std::int64_t> named;  // document → line
  for (const RunLine& line : lines) {
    const std::int64_t doc = finder.find(line.docno);
    if (doc == DocFinder::kUnknown) {
      mistake.note(
          line, fmt::format("Query {} has no document {}.", quoted(data.qid(query)), quoted(line.docno)));
      return;
    }
    if (doc == DocFinder::kAmbiguous) {
      mistake.note(line,
                   fmt::format("Query {} has several documents named {}, which a run cannot distinguish.",
                               quoted(data.qid(query)), quoted(line.docno)));
      return;
    }
    const auto [earlier, inserted] = named.emplace(doc, line.line);
    if (!inserted) {
      mistake.note(line, fmt::format("Document {} of query {} is already on line {}.", quoted(line.docno),
                                     quoted(data.qid(query)), earlier->second));
      return;
    }
    run.scores[data.offset(query) + doc] = line.score;
  }
}

}  // namespace

ExternalScores parse_scores(std::string_view text, const std::string& file, const Dataset& data) {
  ExternalScores read;
  read.scores.reserve(data.docs());
  for (Lines lines(text); lines.next();) {
    std::string_view rest = lines.line();
    const std::string_view word = take_word(rest);
    if (word.empty() || word.front() == '#') continue;
    const WordPlace place{file, lines.number(), column_of(word, lines.line())};
    const double score = parse_score(word, place);
    if (const std::string_view more = take_word(rest); !more.empty()) {
      throw DataError(file, lines.number(), column_of(more, lines.line()),
                      fmt::format("A line must have one score, but {} follows it.", quoted(more)));
    }
    if (std::ssize(read.scores) == data.docs()) {
      throw DataError(file, place.line, place.column,
                      fmt::format("This score has no document: the data has {} documents.", data.docs()));
    }
    read.scores.push_back(score);
  }
  if (std::ssize(read.scores) != data.docs()) {
    throw DataError(
        file, 0, 0,
        fmt::format("The file has {} scores, but the data has {} documents; each document needs one.",
                    read.scores.size(), data.docs()));
  }
  return read;
}

ExternalScores parse_trec_run(std::string_view text, const std::string& file, const Dataset& data) {
  const QueryLines lines_of = lines_by_query(text, file, data);
  ExternalScores run;
  run.scores.assign(data.docs(), -std::numeric_limits<double>::infinity());
  run.retrieved.reserve(lines_of.size());
  FirstMistake mistake;
  for (std::size_t query = 0; query < lines_of.size(); ++query) {
    if (!lines_of[query].empty())
      place_query(lines_of[query], data, static_cast<std::int64_t>(query), run, mistake);
    run.retrieved.push_back(std::ssize(lines_of[query]));
  }
  mistake.throw_if_any(file);
  run.missing_docs =
      data.docs() - std::accumulate(run.retrieved.begin(), run.retrieved.end(), std::int64_t{0});
  run.missing_queries = std::count(run.retrieved.begin(), run.retrieved.end(), std::int64_t{0});
  return run;
}

ExternalScores read_scores(const std::filesystem::path& file, const Dataset& data) {
  return parse_scores(read_file(file), file.string(), data);
}

ExternalScores read_trec_run(const std::filesystem::path& file, const Dataset& data) {
  return parse_trec_run(read_file(file), file.string(), data);
}

}  // namespace olrank
