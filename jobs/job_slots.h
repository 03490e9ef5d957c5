#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/io/safetensors.h"
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

}  // namespace olrank
