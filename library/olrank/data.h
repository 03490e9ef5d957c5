#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Data sets with grades: files, generated data, arrays of yours. Needs the C++20 standard library alone.
namespace olrank {

class Dataset;

/// Rows of which only the values that are not zero are there, as those of compressed sparse rows (CSR): row
/// i has the entries begins[i] to begins[i + 1] of columns, which rise from 0 within a row, and of values.
struct SparseValues {
  std::span<const std::int64_t> begins;  // [docs + 1]
  std::span<const std::int32_t> columns;
  std::span<const float> values;
};

/// One part of a data set: queries one after another, each with its documents, their features and their
/// grades. Copies share their memory, which never changes.
class RankingData {
 public:
  /// `source` is a file of LETOR text (plain, .gz or .zst), a folder with Fold1, …, or
  /// "synth:NAME?key=value". `part` is train, vali or test, for a source that has parts. 0 threads are all
  /// cores.
  static RankingData load(const std::string& source, const std::string& part = "train",
                          std::int64_t fold = 1, int threads = 0);

  /// Arrays of yours, not copied: `owner` keeps them alive. Query q has the documents offsets[q] to
  /// offsets[q + 1]; grades are 0 to 31. Without names, queries are called 1, 2, …. Throws InvalidArgument
  /// for sizes that do not match and for values that are not finite. `weights` of queries, from 0, count in
  /// training from labels alone; without them each query counts 1.
  static RankingData of(std::shared_ptr<const void> owner, std::span<const float> values,
                        std::int64_t features, std::span<const std::uint8_t> grades,
                        std::span<const std::int64_t> offsets, std::vector<std::string> names = {},
                        std::vector<float> weights = {});

  /// Makes data of sparse features.
  static RankingData of(std::shared_ptr<const void> owner, const SparseValues& rows, std::int64_t features,
                        std::span<const std::uint8_t> grades, std::span<const std::int64_t> offsets,
                        std::vector<std::string> names = {}, std::vector<float> weights = {});

  std::int64_t queries() const;
  std::int64_t docs() const;
  std::int64_t features() const;
  std::span<const float> values() const;  // [docs × features], raw; throws for sparse features
  bool is_sparse() const;
  SparseValues sparse_values() const;             // of sparse features
  std::span<const std::uint8_t> grades() const;   // [docs]
  std::span<const std::int64_t> offsets() const;  // [queries + 1]
  std::span<const float> weights() const;         // [queries], or empty
  std::string_view name(std::int64_t query) const;
  /// 32 hexadecimal digits that stand for all of the content.
  std::string fingerprint() const;

  /// Writes it as LETOR text that reads back to the same data, with weights in FILE.weight. Throws
  /// InvalidArgument for names that such text cannot hold.
  void write(const std::filesystem::path& file) const;
  /// The whole data in binary, and back. Throws DataError for bytes that are something else.
  std::string bytes() const;
  static RankingData from_bytes(std::string_view bytes);

  explicit RankingData(std::shared_ptr<const Dataset> data) : data_(std::move(data)) {}
  const Dataset& dataset() const { return *data_; }

 private:
  std::shared_ptr<const Dataset> data_;
};

}  // namespace olrank
