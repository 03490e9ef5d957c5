#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/doc_table.h"
#include "core/io/mapped_memory.h"

namespace olrank {

/// Grades are small integers: gain 2^grade − 1 must stay a number one can add up.
inline constexpr int kLargestGrade = 31;
inline constexpr std::int64_t kLargestFeature = 4'294'967'295;

/// A position in a text. Line and column start at 1; the line is relative to the block.
struct TextPlace {
  std::int64_t line = 0;
  std::int64_t column = 0;
};

/// The documents of a piece of LETOR text. Feature values are kept as runs, so that the block never takes
/// more than its rows of the dense matrix would, whatever the feature numbers are: for each document
///   kDense + length and as many float values of its first features, or
///   number of runs, then for each run: index of its first feature, length, that many float values.
/// A single zero between two runs is filled in; two or more end a run. The runs lie in pages of the block's
/// own, which return to the system with it.
struct LetorBlock {
  /// Set in the first word of a document that is a single run from the first feature. A run that long, of
  /// more than 8 GB of text, counts its words as any other.
  static constexpr std::uint32_t kDense = std::uint32_t{1} << 31;

  struct Failure {
    TextPlace place;  // line counted from the block's first, which is 1
    std::string sentence;
  };

  std::int64_t lines = 0;
  std::int64_t text_bytes = 0;
  std::vector<std::uint8_t> grades;  // [docs]
  MappedMemory runs;                 // 32-bit words as above
  std::span<const std::byte> moved;  // the runs, if a reader moved them to memory of its own
  std::int64_t largest_feature = 0;
  TextPlace largest_feature_place;
  std::int64_t nonzeros = 0;  // values that are not zero
  std::int64_t null_values = 0;
  TextPlace first_null;
  std::optional<Failure> failure;  // of the first malformed line; the lines after it are not parsed

  std::int64_t docs() const { return std::ssize(grades); }

  /// Which documents belong together, and what they are called.
  struct Names {
    std::vector<QueryRun> query_runs;  // their queries are numbers into the names of queries
    std::string qid_text;              // of queries in order of first appearance in the block
    std::vector<std::uint64_t> qid_ends;
    std::string doc_text;
    std::vector<std::uint64_t> doc_ends;  // empty when no document has a name

    PackedTexts qids() const { return {qid_text, qid_ends}; }
    std::int64_t bytes() const;
  };
  Names names;
  /// Appends the names of its documents to those of the documents before it, which may have none so far.
  void append_doc_names(std::size_t docs_before, std::string& text, std::vector<std::uint64_t>& ends) const;
};

/// Reads lines `grade qid:ID feature:value … # comment`. `text` holds whole lines: its last character is a
/// line feed, or it is empty.
LetorBlock parse_letor_block(std::string_view text);

}  // namespace olrank
