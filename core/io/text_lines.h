#pragma once

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/interface.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"

namespace olrank {

/// A piece of text that ends where a line ends.
struct TextBlock {
  std::int64_t number = -1;  // from 0, in the order of the text
  std::string_view text;     // ends in a line feed (added where the last line lacks one), or empty
  std::optional<std::string> failure;  // instead of more text: why there is none
  std::size_t cut_off = 0;             // with a failure: bytes of the unfinished line before it
  std::vector<char> buffer;            // what `text` may point into; kept for the next block
};

/// Cuts a text into blocks of about the same size, for several threads to parse. One thread at a time asks
/// for the next; for compressed text that is the one that decompresses while the others parse.
class TextBlocks : public Interface {
 public:
  virtual bool next(TextBlock& block) = 0;

  /// `text` is read where it lies and outlives the blocks.
  static std::unique_ptr<TextBlocks> of_memory(std::string_view text, std::size_t block_bytes);
  /// A line longer than `longest_line` is a failure; `set_by` says in it what sets the limit.
  static std::unique_ptr<TextBlocks> of_stream(std::unique_ptr<ByteStream> stream, std::size_t block_bytes,
                                               std::size_t longest_line, std::string_view set_by = "");
};

/// The lines of a text of words, counted from 1: scores, runs and judgements of other programs. A file may
/// be compressed, and only a block of it is in memory; a line may have up to a megabyte unless said.
class TextLines {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

  static TextLines of_memory(std::string_view text, std::string file);
  static TextLines of_stream(std::unique_ptr<ByteStream> stream, std::string file,
                             std::size_t longest_line);
  /// Throws IoError for a file that cannot be read.
  static TextLines of_file(const std::filesystem::path& file, std::size_t longest_line = kLongestLine);

  bool next();
  /// Valid until next().
  std::string_view line() const { return line_; }
  bool blank() const;
  std::int64_t number() const { return number_; }
  const std::string& file() const { return file_; }

  /// The words of this line. Throws DataError for another number of them; `shape` says what a line has.
  template <std::size_t kFields>
  std::array<std::string_view, kFields> fields(std::string_view shape) const {
    std::array<std::string_view, kFields> words;
    take_fields(words, shape);
    return words;
  }
  /// Throws DataError at a part of this line.
  [[noreturn]] void fail(std::string_view part, const std::string& sentence) const;
  template <class... Args>
  requires(sizeof...(Args) > 0)
      [[noreturn]] void fail(std::string_view part, fmt::format_string<Args...> sentence,
                             Args&&... args) const {
    fail(part, fmt::format(sentence, std::forward<Args>(args)...));
  }
  /// Throws DataError for this line.
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> sentence, Args&&... args) const {
    fail(line_, fmt::format(sentence, std::forward<Args>(args)...));
  }

 private:
  TextLines(std::unique_ptr<TextBlocks> blocks, std::string file)
      : blocks_(std::move(blocks)), file_(std::move(file)) {}
  void take_fields(std::span<std::string_view> words, std::string_view shape) const;

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

}  // namespace olrank
