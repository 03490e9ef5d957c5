#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/letor_parser.h"
#include "core/data/letor_reader.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Statistics of one file, and suspicious findings.
struct Inspection {
  struct Finding {
    std::int64_t line;  // 0 if it is not about a single line
    std::string sentence;
  };

  std::int64_t queries = 0;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  std::int64_t named_docs = 0;
  std::array<std::int64_t, kLargestGrade + 1> grades{};  // documents of each grade
  std::int64_t fewest_docs = 0;                          // of a query
  double median_docs = 0.0;
  std::int64_t most_docs = 0;
  std::int64_t queries_without_relevant = 0;    // all grades 0
  std::int64_t queries_scattered = 0;           // their documents are not consecutive
  std::vector<std::int64_t> missing_features;   // 0 in every document, counted from 1
  std::vector<std::int64_t> constant_features;  // one value other than 0 in every document
  std::int64_t duplicate_docs = 0;              // same values as an earlier document of the query
  std::int64_t contradicting_docs = 0;          // of these, with another grade
  std::int64_t duplicate_names = 0;             // name of an earlier document of the query
  MissingValues null_values;
  std::optional<std::pair<float, float>> weights;  // the smallest and the largest of a query
  Fingerprint fingerprint;
  std::vector<std::string> qids;
  std::vector<Finding> findings;  // the first few of each kind
};

/// Reads and inspects LETOR text or a binary data file (which has no lines). Throws like the reader.
Inspection inspect_file(const std::string& path, const LetorOptions& options, ExecutionContext& context);

/// A file, and its inspection or the reason why it cannot be read.
struct InspectedFile {
  std::string path;
  std::optional<Inspection> found;
  std::string failure;
};

/// The files of a data folder, or the path itself.
std::vector<std::string> files_to_inspect(const std::string& path);

/// A part of a data folder whose number of features differs from the training set of its fold.
struct WidthFinding {
  std::string sentence;
  bool is_error;  // more features than the training set: a run would fail
};

/// Compares the parts of each fold of the folder, whose files are among `all`.
std::vector<WidthFinding> compare_widths(const std::string& folder, const std::vector<InspectedFile>& all);

}  // namespace olrank
