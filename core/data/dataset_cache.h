#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/dataset.h"
#include "core/data/letor_reader.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Sparse data as dense ones. Throws DataError with the file where they are more than the options allow.
Dataset with_all_zeros(const Dataset& sparse, const std::string& path, const LetorOptions& options,
                       ThreadPool& pool);

/// A folder of binary copies of text files, one per path and wanted layout. A copy is valid as long as the
/// text's size, inode and times are unchanged and the copy is intact; otherwise the text is parsed again
/// and the copy replaced. Copies appear by atomic rename, so concurrent processes do not disturb
/// each other.
class DatasetCache {
 public:
  /// A cache that stores nothing.
  DatasetCache() = default;
  explicit DatasetCache(std::filesystem::path folder, bool warn = true)
      : folder_(std::move(folder)), warn_(warn) {}
  /// `auto` (the user's cache folder, nothing when there is none), `none` or a folder.
  static DatasetCache of_setting(std::string_view setting);

  /// Reads LETOR text or a binary data file. "-" and pipes have no copy.
  Dataset read(const std::string& path, const LetorOptions& options, ThreadPool& pool) const;

  /// Like read(), but never parses: returns the data of a binary file or of a valid copy, otherwise
  /// nothing.
  std::optional<Dataset> find(const std::string& path, const LetorOptions& options, ThreadPool& pool) const;

  /// Empty if it stores nothing.
  const std::filesystem::path& folder() const { return folder_; }
  /// Path of a text's copy in a layout, whether it exists or not; empty without a folder.
  std::filesystem::path copy_of(const std::string& path, FeatureLayout layout = FeatureLayout::kAuto,
                                bool weights = false) const;

 private:
  std::filesystem::path folder_;
  bool warn_ = true;  // warn when a copy cannot be written
};

}  // namespace olrank
