#include "core/data/letor_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
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

const std::uint32_t* first_word(const LetorBlock& block) {
  const std::byte* const runs = block.moved.empty() ? block.runs.data() : block.moved.data();
  return reinterpret_cast<const std::uint32_t*>(runs);
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
  const std::uint32_t* word = first_word(block);
  float* row = rows;
  for (std::int64_t doc = 0; doc < block.docs(); ++doc, row += features) {
    std::uint32_t runs = *word++;
    if (runs >= LetorBlock::kDense) {
      const std::uint32_t length = runs - LetorBlock::kDense;
      std::memcpy(row, word, length * sizeof(float));
      word += length;
      continue;
    }
    for (; runs > 0; --runs) {
      const std::uint32_t index = *word++;
      const std::uint32_t length = *word++;
      std::memcpy(row + index, word, length * sizeof(float));
      word += length;
    }
  }
}

void append_rows(const LetorBlock& block, SparseRows& rows) {
  const std::uint32_t* word = first_word(block);
  const auto append_run = [&](std::uint32_t index, std::uint32_t length) {
    for (const std::uint32_t* const end = word + length; word < end; ++word, ++index) {
      const auto value = std::bit_cast<float>(*word);
      if (value != 0.0F) rows.append(static_cast<std::int32_t>(index), value);
    }
  };
  for (std::int64_t doc = 0; doc < block.docs(); ++doc) {
    std::uint32_t runs = *word++;
    if (runs >= LetorBlock::kDense) {
      append_run(0, runs - LetorBlock::kDense);
    } else {
      for (; runs > 0; --runs) {
        const std::uint32_t index = *word++;
        const std::uint32_t length = *word++;
        append_run(index, length);
      }
    }
    rows.end_row();
  }
}

}  // namespace olrank
