#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// Trials of one network that a GPU can play.
struct NetworkTrials {
  std::int64_t trials = 1;
  std::int64_t rounds = 0;
  std::int64_t parameters = 0;  // of one member
  std::int64_t members = 1;
  bool by_growth = false;  // trained when the history has grown by a share, not in every round
};

/// The seconds that work takes on the CPU and on a GPU, with the start of a program there. They follow from
/// the records in docs/evidence, and their only use is to compare them.
struct DeviceTimes {
  double cpu = 0.0;
  double gpu = 0.0;

  bool gpu_is_faster() const { return gpu < cpu; }
  std::string text() const;  // "about 7 s on a GPU and 450 s on the CPU"
};

/// Trials of which `jobs` play at once, each on one core of the CPU, and on a GPU as many as it has `seats`
/// for; 0: for all.
DeviceTimes times_of(std::span<const NetworkTrials> work, std::int64_t jobs, std::int64_t seats = 0);
/// Passes of `olrank train` over documents with labels.
DeviceTimes times_of_training(std::int64_t docs, std::int64_t parameters, std::int64_t passes, int threads);

/// The device that `auto` means, and a sentence that says which and why.
struct DeviceAdvice {
  std::string device = "auto";  // the CPU, or a GPU such as "cuda:0"
  std::string why;
};

/// Advises the first GPU that can compute if it is faster by these times, else the CPU.
DeviceAdvice faster_device(const DeviceTimes& times, const GpuSurvey& survey);
/// The device that `auto` means where something on the device `before` continues; says so.
std::string device_of_resumed(std::string_view before);
/// Says in a sentence which work `auto` gives to which device of this machine.
std::string meaning_of_auto(const GpuSurvey& survey);

/// The devices that the configuration asks for; `auto` means the CPU here, after settle_device() in
/// jobs/experiment_run.h. Throws for a GPU that is not available, or that no ranker of the configuration
/// can use.
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
  /// The most trials at once, up to jobs(), that have `bytes` each; 0 if one on each GPU has less.
  std::int64_t jobs_with(std::int64_t bytes, std::int64_t data, std::int64_t folds) const;
  /// Names those of several GPUs that have `bytes` for a trial: ", as would --device cuda:0". Empty if all
  /// do or none does.
  std::string other_gpus_for(std::int64_t bytes, std::int64_t data) const;

 private:
  std::vector<GpuDescription> gpus_;
  std::int64_t jobs_;
};

}  // namespace olrank
