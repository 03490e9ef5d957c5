#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/visible_gpus.h"
#include "jobs/settings/configuration.h"
#include "models/neural/network_rankers.h"

namespace olrank {

/// The line after the settings of a ranker that was computed on a GPU, in recipes and model files; a
/// comment for programs that parse settings.
inline constexpr std::string_view kComputedOnGpu = "# computed on a GPU\n";

struct DeviceChoice {
  std::vector<GpuDescription> gpus;  // of one type, ascending; empty: the CPU

  std::string name() const;  // "cpu", "cuda:0", "cuda:0-3"
  bool on_gpus() const { return !gpus.empty(); }
  bool takes(const RankerSettings& ranker) const;
};

/// The GPUs that --device names, ascending; none for `auto` and `cpu`. Throws if one is not available, or
/// if they are of different types: a trial has the same bits only on one type.
std::vector<GpuDescription> gpus_for(const std::string& asked);
std::vector<GpuDescription> gpus_for(const std::string& asked, const GpuSurvey& survey);

/// Why this machine has no GPU that `--device cuda` takes; none if it has one.
std::optional<std::string> why_no_gpu(const GpuSurvey& survey);

/// Chooses as gpus_for() does for commands that use one GPU; throws if --device names several.
std::optional<GpuDescription> gpu_for(const std::string& asked);

/// Where a ranker of these settings runs that takes any query, with the whole memory of its GPU; nothing
/// for the CPU. `subject` begins the message for a ranker that cannot run there.
std::optional<RankerDevice> ranker_device_for(std::string_view subject, const std::string& asked,
                                              const RankerSettings& settings);

/// The devices that the configuration asks for. `auto` means the CPU, as no measurement says yet from which
/// size a GPU pays. Throws for a GPU that is not available, or that no ranker of the configuration can use.
DeviceChoice choose_device(const Configuration& configuration);
DeviceChoice choose_device(const Configuration& configuration, const GpuSurvey& survey);

/// How the parallel trials of an experiment share GPUs: slot s of `jobs` plays on GPU s mod count.
class GpuSlots {
 public:
  GpuSlots(std::vector<GpuDescription> gpus, std::int64_t jobs);
  /// Returns the slots of the configuration: run.jobs trials at once but at least one on each GPU, and not
  /// more than the experiment has.
  static GpuSlots of(const Configuration& configuration, const DeviceChoice& device);

  const std::vector<GpuDescription>& gpus() const { return gpus_; }
  std::int64_t jobs() const { return jobs_; }
  const GpuDescription& gpu_of(std::int64_t slot) const;
  /// The slots on the GPU at this place of gpus().
  std::int64_t slots_on(std::int64_t place) const;

  /// The bytes that each trial on this GPU may take if the documents of a fold take `data` bytes. Trials on
  /// a GPU share the documents of a fold, but may be on different ones of `folds`.
  std::int64_t bytes_on(std::int64_t place, std::int64_t data, std::int64_t folds) const;
  /// The place of the GPU with the least bytes_on(), the first of several. What its trials may take is what
  /// all trials may take, as no result may depend on the GPU that computed it.
  std::int64_t tightest(std::int64_t data, std::int64_t folds) const;
  /// Names what else gives every trial `bytes`, as a clause: " as would --jobs 2 or --device cuda:0". Empty
  /// if nothing does.
  std::string other_slots_for(std::int64_t bytes, std::int64_t data, std::int64_t folds) const;

 private:
  std::vector<GpuDescription> gpus_;
  std::int64_t jobs_;
};

}  // namespace olrank
