#include "core/data/feature_store.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <system_error>
#include <utility>

#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/text/byte_size.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr double kShareOfDisk = 0.9;  // of the free space that one file may take

std::string readable(std::int64_t bytes) {
  return readable_bytes(static_cast<double>(bytes));
}

}  // namespace

MappedMemory FeatureStore::take(std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (left_.fetch_sub(size) >= size) return MappedMemory::anonymous(bytes);
  left_ += size;
  MappedMemory memory = take_in_file(bytes);
  const std::string sentence = fmt::format(
      "Features of {} go beyond --max-memory {}, to a file in '{}' that ends with this process.",
      readable(size), readable(max_bytes_), folder_.string());
  static std::atomic<bool> told{false};
  if (told.exchange(true)) {
    log_detail("{}", sentence);
  } else {
    log_info("{} So do further ones; results do not change.", sentence);
  }
  return memory;
}

MappedMemory FeatureStore::take_in_file(std::size_t bytes, std::string_view what) const {
  make_folder(folder_);
  struct statfs system {};
  if (::statfs(folder_.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC) {
    throw_error<IoError>(
        "{} of {} exceed --max-memory {}, and '{}', where they would go, is memory itself (tmpfs): choose "
        "a cache folder (--cache or XDG_CACHE_HOME) on a disk, or raise --max-memory.",
        what, readable(static_cast<std::int64_t>(bytes)), readable(max_bytes_), folder_.string());
  }
  std::error_code unknown;
  const std::filesystem::space_info space = std::filesystem::space(folder_, unknown);
  if (!unknown && static_cast<double>(bytes) > kShareOfDisk * static_cast<double>(space.available)) {
    throw_error<IoError>(
        "{} of {} exceed --max-memory {} and would go to a file in '{}', but its disk has only {} free: "
        "free some space, choose a cache folder (--cache or XDG_CACHE_HOME) on another disk, or raise "
        "--max-memory.",
        what, readable(static_cast<std::int64_t>(bytes)), readable(max_bytes_), folder_.string(),
        readable(static_cast<std::int64_t>(space.available)));
  }
  return MappedMemory::of_unnamed_file(folder_, bytes);
}

MappedMemory feature_memory(FeatureStore* store, std::int64_t docs, std::int64_t features) {
  const std::size_t bytes = static_cast<std::size_t>(docs * features) * sizeof(float);
  return store != nullptr ? store->take(bytes) : MappedMemory::anonymous(bytes);
}

Dataset stored_by(std::shared_ptr<FeatureStore> store, Dataset data, const std::string& name) {
  if (store == nullptr) return data;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const std::int64_t bytes = data.rows_of(query).bytes();
    if (bytes <= store->max_bytes()) continue;
    throw DataError(
        name, 0, 0,
        fmt::format("The {} documents of query '{}' need {}, but --max-memory allows {}. Raise "
                    "--max-memory: a query must fit into it.",
                    data.docs_of(query), data.qid(query), readable(bytes), readable(store->max_bytes())));
  }
  Dataset::Contents contents = data.contents();
  contents.store = std::move(store);
  return Dataset(std::move(contents));
}

}  // namespace olrank
