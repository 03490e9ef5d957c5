#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/dataset.h"
#include "core/data/letor_reader.h"
#include "core/runtime/thread_pool.h"

namespace olrank {

/// Binary copies of text files in a folder of their own, one for each path. A copy serves as long as the
/// text's size, inode and times are what they were and the copy is whole; else the text is read again and
/// the copy replaced. Copies appear by atomic rename: of two processes that start at once either's copy
/// stays.
class DatasetCache {
 public:
  /// Keeps nothing.
  DatasetCache() = default;
  explicit DatasetCache(std::filesystem::path folder, bool complain = true)
      : folder_(std::move(folder)), complain_(complain) {}
  /// `auto` (the user's cache folder, nothing when there is none), `none` or a folder.
  static DatasetCache of_setting(std::string_view setting);

  /// Reads LETOR text or a binary data file. "-" and pipes have no copy.
  Dataset read(const std::string& path, const LetorOptions& options, ThreadPool& pool) const;

  /// What read() gives where it parses nothing: a binary data file, or a text whose copy serves; else
  /// nothing.
  std::optional<Dataset> find(const std::string& path, const LetorOptions& options, ThreadPool& pool) const;

  /// Where the copy of a text lies or would lie; empty without a folder.
  std::filesystem::path copy_of(const std::string& path) const;

 private:
  std::filesystem::path folder_;
  bool complain_ = true;  // warn when a copy cannot be written
};

}  // namespace olrank
