#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/data/doc_table.h"
#include "core/data/letor_parser.h"
#include "core/data/letor_reader.h"
#include "core/io/text_lines.h"

// Steps from bytes to documents, shared by the readers of whole files and of streams.
namespace olrank {

/// Splits the bytes of a file, compressed or not, into blocks of text. The bytes must outlive the blocks.
std::unique_ptr<TextBlocks> letor_text_blocks(std::string_view bytes, const LetorOptions& options);
std::unique_ptr<TextBlocks> letor_text_blocks(std::unique_ptr<ByteStream> text,
                                              const LetorOptions& options);

/// Parses a block of text; a block with a failure becomes a failure on its first line.
LetorBlock parsed_block(TextBlock& block);

/// Counts what the blocks of a text hold, which it is shown in their order.
struct SeenBlocks {
  std::int64_t lines = 0;
  std::int64_t docs = 0;
  std::int64_t largest_feature = 0;
  TextPlace widest;  // where that is
  MissingValues missing;

  /// A place of the next block as one of the text.
  TextPlace in_text(TextPlace place) const { return {lines + place.line, place.column}; }
  void add(const LetorBlock& block);
  /// Throws DataError, with `name` as the file, for a text without documents or features; warns of missing
  /// values.
  void check_end(const std::string& name) const;
};

/// Fills zeroed rows of `features` values, at least the block's largest feature, with its documents.
void write_rows(const LetorBlock& block, std::int64_t features, float* rows);
/// Appends the block's documents without their zeros.
void append_rows(const LetorBlock& block, SparseRows& rows);

}  // namespace olrank
