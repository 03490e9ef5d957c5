#include "core/data/dataset_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <system_error>
#include <utility>

#include "core/data/dataset_file.h"
#include "core/data/doc_table.h"
#include "core/data/query_weights.h"
#include "core/io/fingerprint.h"
#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

std::string canonical_text(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path canonical = std::filesystem::canonical(path, failed);
  return failed ? path : canonical.string();
}

/// Empty when it is not a regular file.
std::string state_text(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  // The time of change catches what keeps the time of modification, such as unpacking an archive.
  return fmt::format("{}\n{} {} {} {}.{:09} {}.{:09}", canonical_text(path), status.st_dev, status.st_ino,
                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

/// Stands for the text, and its weights if they are read, as they are on the disk now: nothing when it is
/// not a regular file.
std::optional<Fingerprint> state_of(const std::string& path, bool weights) {
  const std::string text = state_text(path);
  if (text.empty()) return std::nullopt;
  return fingerprint_of(weights ? text + state_text(weights_file_of(path)) : text);
}

double matrix_bytes(const Dataset& data) {
  const auto bytes = static_cast<double>(data.all_rows().bytes());
  return data.is_sparse() ? bytes + sparse_bytes(0.0, data.features(), 0.0) : bytes;
}

bool exceeds(const Dataset& data, const LetorOptions& options, const std::string& path) {
  const double limit = data.is_sparse() ? static_cast<double>(options.max_bytes)
                                        : options.most_bytes_of(text_bytes_of(path));
  return matrix_bytes(data) > limit;
}

std::optional<Dataset> read_copy(const std::filesystem::path& copy, const Fingerprint& state,
                                 const std::string& path, const LetorOptions& options, ThreadPool& pool) {
  try {
    MappedMemory memory = MappedMemory::of_file(copy);
    const std::optional<DatasetFileNotes> notes = read_dataset_notes(memory.text());
    if (!notes || !(notes->source == state)) return std::nullopt;
    Dataset data = read_dataset_memory(std::move(memory), copy.string(), pool);
    // Over the limit, the text's reader finds the line to blame.
    if (exceeds(data, options, path)) return std::nullopt;
    std::error_code unknown;
    const auto text_bytes = static_cast<double>(std::filesystem::file_size(path, unknown));
    if (options.refuse_wide && is_too_wide(matrix_bytes(data), text_bytes)) return std::nullopt;
    warn_of_missing(path, notes->missing);
    return stored_by(options.store, std::move(data), path);
  } catch (const Error& error) {
    log_detail("The binary copy of {} cannot be used: {}", path, error.what());
    return std::nullopt;
  }
}

}  // namespace

DatasetCache DatasetCache::of_setting(std::string_view setting) {
  if (setting == "none") return {};
  if (setting != "auto") return DatasetCache(std::filesystem::path(setting));
  const std::filesystem::path folder = user_cache_folder();
  return folder.empty() ? DatasetCache() : DatasetCache(folder / "data", false);
}

Dataset with_all_zeros(const Dataset& sparse, const std::string& path, const LetorOptions& options,
                       ThreadPool& pool) {
  const auto columns = static_cast<double>(sparse.features());
  const double bytes = static_cast<double>(sparse.docs()) * columns * sizeof(float);
  if (bytes > options.most_bytes_of(text_bytes_of(path))) {
    throw_data_error(path, 0, 0,
                     "The file holds sparse features of {} documents. As dense ones, which are "
                     "needed here, they take {:.0f} bytes, but --max-memory allows {}. Raise "
                     "--max-memory.",
                     sparse.docs(), bytes, options.max_bytes);
  }
  OwnedFeatures made{sparse.features(),
                     feature_memory(options.store.get(), sparse.docs(), sparse.features())};
  write_rows(sparse.all_rows(), made.values.as<float>().data());
  return with_features(sparse, std::move(made), pool);
}

std::filesystem::path DatasetCache::copy_of(const std::string& path, FeatureLayout layout,
                                            bool weights) const {
  if (folder_.empty()) return {};
  const bool weighted = weights && !weights_file_of(path).empty();
  return folder_ / fmt::format("{}.{}{}.olrank", fingerprint_of(canonical_text(path)).hex(),
                               name_of(layout), weighted ? ".weights" : "");
}

std::optional<Dataset> DatasetCache::find(const std::string& path, const LetorOptions& options,
                                          ThreadPool& pool) const {
  const std::optional<Fingerprint> state = path == "-" ? std::nullopt : state_of(path, options.weights);
  if (!state) return std::nullopt;
  if (is_dataset_file(MappedMemory::of_file(path).text())) {
    Dataset data = read_dataset_file(path, pool);
    if (exceeds(data, options, path)) {
      throw_data_error(path, 0, 0,
                       "The matrix of {} documents and {} features needs {:.0f} bytes, but "
                       "--max-memory allows {}. Raise --max-memory.",
                       data.docs(), data.features(), matrix_bytes(data), options.max_bytes);
    }
    if (data.is_sparse() && options.layout == FeatureLayout::kDense)
      data = with_all_zeros(data, path, options, pool);
    return stored_by(options.store, std::move(data), path);
  }
  const std::filesystem::path copy = copy_of(path, options.layout, options.weights);
  if (copy.empty()) return std::nullopt;
  std::optional<Dataset> data = read_copy(copy, *state, path, options, pool);
  if (data) log_detail("{}: loaded from the binary copy {}.", path, copy.string());
  return data;
}

Dataset DatasetCache::read(const std::string& path, const LetorOptions& options, ThreadPool& pool) const {
  const std::optional<Fingerprint> state = path == "-" ? std::nullopt : state_of(path, options.weights);
  if (std::optional<Dataset> data = find(path, options, pool)) return std::move(*data);
  const std::filesystem::path copy = copy_of(path, options.layout, options.weights);
  if (!state || copy.empty()) return read_letor(path, options, pool);
  DatasetFileNotes notes{*state, {}};
  Dataset data = read_letor(path, options, pool, &notes.missing);
  if (state_of(path, options.weights) != state)
    return data;  // the text changed meanwhile: who knows what was read
  try {
    make_folder(folder_);
    write_dataset_file(data, notes, copy);
  } catch (const IoError& error) {
    const std::string sentence =
        fmt::format("Could not cache {}; it will be parsed again next time: {}", path, error.what());
    if (warn_) {
      log_warning("{}", sentence);
    } else {
      log_detail("{}", sentence);
    }
  }
  return data;
}

}  // namespace olrank
