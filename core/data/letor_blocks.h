#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/data/letor_parser.h"
#include "core/data/letor_reader.h"
#include "core/data/text_blocks.h"

// Steps on the way from bytes to documents, for readers of whole files and of streams.
namespace olrank {

/// The bytes of a file, compressed or not, as blocks of text; they outlive the blocks.
std::unique_ptr<TextBlocks> letor_text_blocks(std::string_view bytes, const LetorOptions& options);
std::unique_ptr<TextBlocks> letor_text_blocks(ByteSource bytes, Compression compression,
                                              const LetorOptions& options);

/// Parses a block of such a text; one that failed becomes a failure of its first line.
LetorBlock parsed_block(TextBlock& block);

/// Fills zeroed rows of `features` values, at least the block's largest feature, with its documents.
void write_rows(const LetorBlock& block, std::int64_t features, float* rows);

}  // namespace olrank
