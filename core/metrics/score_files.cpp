#include "core/metrics/score_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "core/data/doc_finder.h"
#include "core/data/text_blocks.h"
#include "core/error.h"
#include "core/io/byte_stream.h"
#include "core/io/descriptor.h"

namespace olrank {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

/// The lines of a text, counted from 1; only a block of them is in memory.
class Lines {
 public:
  Lines(std::unique_ptr<TextBlocks> blocks, const std::string& file)
      : blocks_(std::move(blocks)), file_(file) {}

  bool next() {
    while (rest_.empty()) {
      if (!blocks_->next(block_)) return false;
      if (block_.failure)
        throw DataError(file_, number_ + 1, static_cast<std::int64_t>(block_.cut_off) + 1, *block_.failure);
      rest_ = block_.text;
    }
    const std::size_t end = rest_.find('\n');  // a block ends in one
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    ++number_;
    return true;
  }
  /// Valid until next().
  std::string_view line() const { return line_; }
  std::int64_t number() const { return number_; }

 private:
  std::unique_ptr<TextBlocks> blocks_;
  const std::string& file_;
  TextBlock block_;
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
  std::string_view qid;
  std::string_view docno;
  double score;
};

RunLine parse_run_line(std::string_view line, const std::string& file, std::int64_t number) {
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
  const double score = parse_score(score_word, {file, number, column_of(score_word, line)});
  if (!std::isfinite(score)) {
    throw DataError(file, number, column_of(score_word, line), "The scores of a run must be finite.");
  }
  return {query, docno, score};
}

/// Puts the lines of a run to their documents.
class RunReader {
 public:
  RunReader(const Dataset& data, const std::string& file) : data_(data), file_(file), docs_(data) {
    queries_.reserve(data.queries());
    for (std::int64_t query = 0; query < data.queries(); ++query) queries_.emplace(data.qid(query), query);
    run_.scores.assign(data.docs(), -std::numeric_limits<double>::infinity());
    run_.retrieved.resize(data.queries());
    line_of_.resize(data.docs());
  }

  void add(const Lines& lines) {
    const std::string_view text = lines.line();
    const RunLine line = parse_run_line(text, file_, lines.number());
    const auto fail = [&](std::string_view word, const std::string& sentence) {
      throw DataError(file_, lines.number(), column_of(word, text), sentence);
    };
    const auto known = queries_.find(line.qid);
    if (known == queries_.end()) fail(line.qid, fmt::format("The data has no query {}.", quoted(line.qid)));
    const std::int64_t query = known->second;
    const std::int32_t doc = docs_.by_label(query, line.docno);
    if (doc == DocFinder::kUnknown)
      fail(line.docno, fmt::format("Query {} has no document {}.", quoted(line.qid), quoted(line.docno)));
    if (doc == DocFinder::kAmbiguous) {
      fail(line.docno,
           fmt::format("Query {} has several documents named {}, which a run cannot distinguish.",
                       quoted(line.qid), quoted(line.docno)));
    }
    const std::int64_t place = data_.offset(query) + doc;
    if (line_of_[place] > 0) {
      fail(line.docno, fmt::format("Document {} of query {} is already on line {}.", quoted(line.docno),
                                   quoted(line.qid), line_of_[place]));
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
  const std::string& file_;
  DocFinder docs_;
  std::unordered_map<std::string_view, std::int64_t> queries_;
  std::vector<std::int64_t> line_of_;  // by document, 0 without one
  ExternalScores run_;
};

ExternalScores scores_in(Lines lines, const std::string& file, const Dataset& data) {
  ExternalScores read;
  read.scores.reserve(data.docs());
  while (lines.next()) {
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

ExternalScores run_in(Lines lines, const std::string& file, const Dataset& data) {
  RunReader reader(data, file);
  while (lines.next()) {
    if (lines.line().find_first_not_of(kBlanks) != std::string_view::npos) reader.add(lines);
  }
  return reader.finish();
}

Lines lines_in(std::string_view text, const std::string& file) {
  return {TextBlocks::of_memory(text, kBlockBytes), file};
}

/// Reads a file with `reader`, line by line.
template <class Reader>
ExternalScores read_lines(const std::filesystem::path& path, const Dataset& data, const Reader& reader) {
  const std::string name = path.string();
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw IoError("read", name, errno);
  auto blocks = TextBlocks::of_stream(descriptor_stream(file.number(), name), kBlockBytes, kBlockBytes);
  return reader(Lines(std::move(blocks), name), name, data);
}

}  // namespace

ExternalScores parse_scores(std::string_view text, const std::string& file, const Dataset& data) {
  return scores_in(lines_in(text, file), file, data);
}

ExternalScores parse_trec_run(std::string_view text, const std::string& file, const Dataset& data) {
  return run_in(lines_in(text, file), file, data);
}

ExternalScores read_scores(const std::filesystem::path& file, const Dataset& data) {
  return read_lines(file, data, scores_in);
}

ExternalScores read_trec_run(const std::filesystem::path& file, const Dataset& data) {
  return read_lines(file, data, run_in);
}

}  // namespace olrank
