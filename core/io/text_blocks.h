#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
class TextBlocks {
 public:
  TextBlocks() = default;
  virtual ~TextBlocks() = default;
  TextBlocks(const TextBlocks&) = delete;
  TextBlocks& operator=(const TextBlocks&) = delete;

  virtual bool next(TextBlock& block) = 0;

  /// `text` is read where it lies and outlives the blocks.
  static std::unique_ptr<TextBlocks> of_memory(std::string_view text, std::size_t block_bytes);
  /// A line longer than `longest_line` is a failure; `set_by` says in it what sets the limit.
  static std::unique_ptr<TextBlocks> of_stream(std::unique_ptr<ByteStream> stream, std::size_t block_bytes,
                                               std::size_t longest_line, std::string_view set_by = "");
};

}  // namespace olrank
