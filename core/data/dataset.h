#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/fingerprint.h"

namespace olrank {

class DeviceDocs;

/// The features of a document that are not zero, by ascending column.
struct SparseRow {
  std::span<const std::int32_t> columns;
  std::span<const float> values;
};

/// Documents × features in row-major order; a view that owns nothing. Dense rows have all their values;
/// sparse ones their non-zeros, those of all rows one after the other.
struct FeatureMatrix {
  const float* values = nullptr;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  /// Where each list of documents that belong together ends, in ascending order; empty: all are one list.
  /// Only models whose scores depend on the other documents of a list look at it.
  std::span<const std::int64_t> list_ends = {};
  const std::int64_t* row_begins = nullptr;  // [docs + 1] into values and columns, of sparse rows
  const std::int32_t* columns = nullptr;     // of values, from 0, of sparse rows
  /// The documents where a device has them; the host then has those alone that were copied to it.
  const DeviceDocs* on_device = nullptr;

  bool is_sparse() const { return row_begins != nullptr; }
  SparseRow sparse_doc(std::int64_t index) const {
    const auto count = static_cast<std::size_t>(row_begins[index + 1] - row_begins[index]);
    return {{columns + row_begins[index], count}, {values + row_begins[index], count}};
  }
  /// The rows must be dense.
  std::span<const float> doc(std::int64_t index) const {
    return {values + index * features, static_cast<std::size_t>(features)};
  }
  /// Documents `begin` to `end` as one list.
  FeatureMatrix part(std::int64_t begin, std::int64_t end) const {
    if (is_sparse()) return {values, end - begin, features, {}, row_begins + begin, columns};
    return {values + begin * features, end - begin, features};
  }
  std::int64_t bytes() const {
    if (!is_sparse()) return docs * features * static_cast<std::int64_t>(sizeof(float));
    constexpr std::int64_t kEntry = sizeof(float) + sizeof(std::int32_t);
    return (row_begins[docs] - row_begins[0]) * kEntry +
           docs * static_cast<std::int64_t>(sizeof(std::int64_t));
  }
  std::int64_t lists() const { return list_ends.empty() ? 1 : std::ssize(list_ends); }
  std::int64_t list_begin(std::int64_t list) const { return list == 0 ? 0 : list_ends[list - 1]; }
  std::int64_t list_end(std::int64_t list) const { return list_ends.empty() ? docs : list_ends[list]; }
};

class FeatureStore;

/// Strings stored back to back in one block of memory: each costs its characters and eight bytes. A
/// non-owning view.
struct PackedTexts {
  std::span<const char> text;
  std::span<const std::uint64_t> ends;  // end offset of each string

  bool empty() const { return ends.empty(); }
  std::size_t size() const { return ends.size(); }
  std::string_view operator[](std::size_t index) const {
    const std::uint64_t begin = index == 0 ? 0 : ends[index - 1];
    return {text.data() + begin, static_cast<std::size_t>(ends[index] - begin)};
  }
};

/// One part of a data set (training, validation or test): queries in order of first appearance, the
/// documents of each query contiguous. The data set keeps its memory (a parsed file, a mapped cache,
/// generated data) alive and never changes it.
class Dataset {
 public:
  struct Contents {
    std::shared_ptr<const void> memory;        // owns the memory of the spans below
    std::shared_ptr<FeatureStore> store;       // of features made of these; null: the process's own memory
    std::span<const float> values;             // [docs × features] or of sparse rows
    std::span<const std::uint8_t> grades;      // [docs]
    std::span<const std::int64_t> offsets;     // [queries + 1], documents before each query
    std::vector<std::string> qids;             // [queries]
    std::vector<float> weights;                // [queries] in training from labels; empty: 1 each
    PackedTexts doc_names;                     // [docs], or empty when no document is named
    std::span<const std::int64_t> row_begins;  // [docs + 1] of sparse rows, as in FeatureMatrix; else empty
    std::span<const std::int32_t> columns;     // of the values of sparse rows
    std::int64_t features = 0;
    std::string source;       // the files that were read, for messages; empty where there are none
    Fingerprint fingerprint;  // of content only, not of compression or line ends
    bool reordered = false;   // documents were grouped by query, so they are no longer in file order
  };

  explicit Dataset(Contents contents);

  std::int64_t queries() const { return std::ssize(contents_.qids); }
  std::int64_t docs() const { return std::ssize(contents_.grades); }
  std::int64_t features() const { return contents_.features; }
  int max_grade() const { return max_grade_; }
  const Fingerprint& fingerprint() const { return contents_.fingerprint; }
  bool reordered() const { return contents_.reordered; }

  std::int64_t docs_of(std::int64_t query) const { return offset(query + 1) - offset(query); }
  std::int64_t offset(std::int64_t query) const { return contents_.offsets[query]; }
  std::string_view qid(std::int64_t query) const { return contents_.qids[query]; }
  /// Empty for a document without a name.
  std::string_view doc_name(std::int64_t doc) const {
    return has_doc_names() ? contents_.doc_names[doc] : std::string_view();
  }
  bool has_doc_names() const { return !contents_.doc_names.empty(); }
  const Contents& contents() const { return contents_; }

  /// Whether the rows are those of FeatureMatrix::is_sparse().
  bool is_sparse() const { return !contents_.row_begins.empty(); }
  /// Dense or sparse, with the queries as lists.
  FeatureMatrix all_rows() const {
    return {contents_.values.data(),
            docs(),
            features(),
            contents_.offsets.subspan(1),
            is_sparse() ? contents_.row_begins.data() : nullptr,
            contents_.columns.data()};
  }
  FeatureMatrix rows_of(std::int64_t query) const {
    return all_rows().part(offset(query), offset(query + 1));
  }
  /// Returns all rows to code that reads dense ones only. Throws InvalidArgument for sparse ones.
  FeatureMatrix all_features() const {
    if (is_sparse()) refuse_sparse();
    return all_rows();
  }
  FeatureMatrix features_of(std::int64_t query) const {
    if (is_sparse()) refuse_sparse();
    return rows_of(query);
  }
  std::span<const std::int64_t> offsets() const { return contents_.offsets; }
  std::span<const std::uint8_t> all_grades() const { return contents_.grades; }
  std::span<const std::uint8_t> grades_of(std::int64_t query) const {
    return contents_.grades.subspan(offset(query), docs_of(query));
  }

 private:
  [[noreturn]] static void refuse_sparse();

  Contents contents_;
  int max_grade_ = 0;
};

}  // namespace olrank
