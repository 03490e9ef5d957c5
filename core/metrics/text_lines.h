#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/data/text_blocks.h"
#include "core/io/descriptor.h"

namespace olrank {

/// The lines of a text of words, counted from 1: scores, runs and judgements of other programs. A file may
/// be compressed, and only a block of it is in memory; a line may have up to a megabyte unless said.
class TextLines {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  static TextLines of_memory(std::string_view text, std::string file);
  /// Throws IoError for a file that cannot be read.
  static TextLines of_file(const std::filesystem::path& file, std::size_t longest_line = kLongestLine);

  bool next();
  /// Valid until next().
  std::string_view line() const { return line_; }
  bool blank() const;
  std::int64_t number() const { return number_; }
  const std::string& file() const { return file_; }

  /// Throws DataError at a part of this line.
  [[noreturn]] void fail(std::string_view part, const std::string& sentence) const;

 private:
  TextLines(std::unique_ptr<TextBlocks> blocks, std::string file)
      : blocks_(std::move(blocks)), file_(std::move(file)) {}

  std::unique_ptr<Descriptor> descriptor_;  // which the blocks read from
  std::unique_ptr<TextBlocks> blocks_;
  std::string file_;
  TextBlock block_;
  std::string_view rest_;
  std::string_view line_;
  std::int64_t number_ = 0;
};

/// Removes the first word from `line` and returns it; empty if there is none.
std::string_view take_word(std::string_view& line);

/// A short, printable excerpt of the file, in quotes.
std::string quoted(std::string_view word);

/// A number of the current line; infinities are valid. Throws DataError for anything else and for NaN.
double parse_score(std::string_view word, const TextLines& lines);

/// A line `qid Q0 docno rank score tag` of a TREC run.
struct RunLine {
  std::string_view qid;
  std::string_view docno;
  double score = 0.0;
};

/// The current line. Throws DataError for another number of fields and scores that are not finite.
RunLine parse_run_line(const TextLines& lines);

/// A line `qid iteration docno grade` of TREC judgements.
struct QrelsLine {
  std::string_view qid;
  std::string_view docno;
  int grade = 0;
};

/// The current line. Negative grades, which mark junk, become 0. Throws DataError for another number of
/// fields, and for a grade that is no integer or too large.
QrelsLine parse_qrels_line(const TextLines& lines);

}  // namespace olrank
