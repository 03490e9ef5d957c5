#include "core/data/letor_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "core/error.h"

namespace olrank {
namespace {

/// Takes a byte-order mark off the text's start; one of UTF-16 is a failure.
void take_off_mark(TextBlock& block) {
  if (block.text.starts_with("\xEF\xBB\xBF")) {
    block.text.remove_prefix(3);
  } else if (block.text.starts_with("\xFF\xFE") || block.text.starts_with("\xFE\xFF")) {
    block.failure = "The text is encoded in UTF-16; convert it to UTF-8.";
  }
}

std::size_t longest_line(const LetorOptions& options) {
  return static_cast<std::size_t>(std::max<std::int64_t>(options.max_bytes, 1 << 20));
}

/// Calls run(first feature, values) for each run of each document, and end() behind a document.
template <class Run, class End>
void for_runs(const LetorBlock& block, const Run& run, const End& end) {
  const std::byte* const runs = block.moved.empty() ? block.runs.data() : block.moved.data();
  const auto* word = reinterpret_cast<const std::uint32_t*>(runs);
  for (std::int64_t doc = 0; doc < block.docs(); ++doc) {
    const std::uint32_t head = *word++;
    const bool dense = head >= LetorBlock::kDense;
    for (std::uint32_t left = dense ? 1 : head; left > 0; --left) {
      const std::uint32_t index = dense ? 0 : *word++;
      const std::uint32_t length = dense ? head - LetorBlock::kDense : *word++;
      run(index, std::span(word, length));
      word += length;
    }
    end();
  }
}

}  // namespace

std::unique_ptr<TextBlocks> letor_text_blocks(std::unique_ptr<ByteStream> text,
                                              const LetorOptions& options) {
  return TextBlocks::of_stream(std::move(text), options.block_bytes, longest_line(options),
                               ", the limit set by --max-memory");
}

std::unique_ptr<TextBlocks> letor_text_blocks(std::string_view bytes, const LetorOptions& options) {
  const Compression compression = compression_of(bytes.substr(0, 4));
  if (compression == Compression::kNone) return TextBlocks::of_memory(bytes, options.block_bytes);
  return letor_text_blocks(decompressed(memory_source(bytes), compression), options);
}

LetorBlock parsed_block(TextBlock& block) {
  if (block.number == 0) take_off_mark(block);
  if (!block.failure) return parse_letor_block(block.text);
  LetorBlock nothing;
  nothing.failure = LetorBlock::Failure{{1, static_cast<std::int64_t>(block.cut_off) + 1}, *block.failure};
  return nothing;
}

void SeenBlocks::add(const LetorBlock& block) {
  if (block.null_values > 0 && missing.count == 0) {
    const TextPlace first = in_text(block.first_null);
    missing = {0, first.line, first.column};
  }
  missing.count += block.null_values;
  if (block.largest_feature > largest_feature) {
    largest_feature = block.largest_feature;
    widest = in_text(block.largest_feature_place);
  }
  lines += block.lines;
  docs += block.docs();
}

void SeenBlocks::check_end(const std::string& name) const {
  if (docs == 0) throw DataError(name, 1, 1, "The file contains no document.");
  if (largest_feature == 0) throw DataError(name, 1, 1, "No document in the file has a feature.");
  warn_of_missing(name, missing);
}

void write_rows(const LetorBlock& block, std::int64_t features, float* rows) {
  float* row = rows;
  for_runs(
      block,
      [&](std::uint32_t index, std::span<const std::uint32_t> values) {
        std::memcpy(row + index, values.data(), values.size_bytes());
      },
      [&] { row += features; });
}

void append_rows(const LetorBlock& block, SparseRows& rows) {
  for_runs(
      block,
      [&](std::uint32_t index, std::span<const std::uint32_t> values) {
        for (const std::uint32_t bits : values) {
          if (const auto value = std::bit_cast<float>(bits); value != 0.0F)
            rows.append(static_cast<std::int32_t>(index), value);
          ++index;
        }
      },
      [&] { rows.end_row(); });
}

}  // namespace olrank
