#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/io/safetensors.h"
#include "jobs/output_folder.h"
#include "sim/recorded_feedback.h"
#include "sim/trial_settings.h"

namespace olrank {

/// Calls work(number, slot) for each number below `count` in ascending order, up to `slots` at once on a
/// thread each, of which slot 0 is the caller's. Begins nothing more once `stopping` says so, or once a
/// call has thrown; the first exception is thrown again when all calls have ended.
void run_in_slots(std::size_t count, int slots, const std::function<bool()>& stopping,
                  const std::function<void(std::size_t number, std::int64_t slot)>& work);

/// One fold, ready for trials.
struct FoldData {
  TrialData data;
  std::string fingerprint;  // of the data that trials see
  ModelMetadata inputs;     // for model files: how a model's inputs are computed from raw features
  std::optional<RecordedFeedback> recorded;
};

/// Loads each fold on first use. Users share ownership of a fold; the cache also keeps the last one, so
/// consecutive jobs on one fold share it.
template <class Data>
class FoldCacheOf {
 public:
  using Load = std::function<std::shared_ptr<const Data>(std::int64_t fold)>;
  explicit FoldCacheOf(Load load) : load_(std::move(load)) {}

  /// Thread-safe; one thread loads at a time.
  std::shared_ptr<const Data> get(std::int64_t fold) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Data> data = known_[fold].lock();
    if (!data) {
      latest_.reset();
      data = load_(fold);
      known_[fold] = data;
    }
    latest_ = data;
    return data;
  }

 private:
  Load load_;
  std::mutex mutex_;
  std::map<std::int64_t, std::weak_ptr<const Data>> known_;
  std::shared_ptr<const Data> latest_;
};

using FoldCache = FoldCacheOf<FoldData>;

/// One piece of a study that is computed once: a pure function of its name and recipe.
struct WorkCell {
  std::string name;
  std::string recipe;  // what else decides the result: sizes, settings, fingerprints of data
  double cost = 1.0;   // in comparison with other cells
  /// An object that has the recipe; nothing if a signal stopped it.
  std::function<std::optional<nlohmann::ordered_json>()> compute = {};
  std::string title = {};  // that progress shows; the name if empty
};

/// The finished cells of a study's folder, one file each: DIR/cells/NAME.json. A file appears by atomic
/// rename.
class WorkCells {
 public:
  struct Naming {
    std::string_view command;                       // that messages name: "olrank bench generalisation"
    std::string recipe;                             // the member that holds the recipe
    std::function<bool(std::string_view)> is_cell;  // whether a file of this name may be a cell's
  };

  WorkCells(std::filesystem::path folder, Naming naming)
      : folder_(std::move(folder)), naming_(std::move(naming)) {}

  bool has(const WorkCell& cell) const;
  bool has_any() const { return !files().empty(); }
  /// Throws InvalidArgument for a cell of another recipe, IoError for a file that is no cell.
  nlohmann::ordered_json read(const WorkCell& cell) const;
  void write(const WorkCell& cell, const nlohmann::ordered_json& result) const;
  void clear() const;
  /// Computes the shard's cells that the folder lacks, `jobs` at once, and tells the progress. Stops early
  /// at a signal; the first error ends it.
  void compute(const std::vector<WorkCell>& cells, const Shard& shard, int jobs) const;

 private:
  std::filesystem::path file_of(const WorkCell& cell) const;
  std::vector<std::string> files() const;

  std::filesystem::path folder_;
  Naming naming_;
};

}  // namespace olrank
