#include "jobs/device_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/runtime/device.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

std::vector<int> numbers_of(const std::string& asked, const DeviceRequest& request, int count) {
  std::vector<int> numbers;
  if (request.every_gpu) {
    numbers.resize(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  for (const GpuRange& range : request.gpus) {
    if (range.last >= count) {
      throw_error<InvalidArgument>(
          "--device {}: There is no cuda:{}: the driver reports {}, numbered from cuda:0.", asked,
          std::max(range.first, count), counted(count, "GPU"));
    }
    for (int number = range.first; number <= range.last; ++number) numbers.push_back(number);
  }
  return numbers;
}

void check_libraries(const std::string& asked, const GpuSurvey& survey) {
  for (const DeviceLibrary& library : survey.libraries) {
    if (library.version == library.built_with) continue;
    throw_error<InvalidArgument>(
        "--device {}: The loaded {} is version {}, but this program was built with {}: use the CUDA "
        "libraries that belong to its LibTorch, or build it again.",
        asked, library.name, library.version, library.built_with);
  }
}

void check_capability(const std::string& asked, const GpuDescription& gpu, const GpuSurvey& survey) {
  if (10 * gpu.capability_major + gpu.capability_minor >= survey.least_capability) return;
  throw_error<InvalidArgument>(
      "--device {}: The kernels of this build need compute capability {}.{}, but {} has {}.{}: configure "
      "with -DCMAKE_CUDA_ARCHITECTURES={}{}, or use --device cpu.",
      asked, survey.least_capability / 10, survey.least_capability % 10, gpu.name, gpu.capability_major,
      gpu.capability_minor, gpu.capability_major, gpu.capability_minor);
}

bool of_one_type(const GpuDescription& a, const GpuDescription& b) {
  return a.name == b.name && a.capability_major == b.capability_major &&
         a.capability_minor == b.capability_minor && a.multiprocessors == b.multiprocessors;
}

std::string type_of(const GpuDescription& gpu) {
  return fmt::format("cuda:{} ({}, {} multiprocessors)", gpu.index, gpu.name, gpu.multiprocessors);
}

std::string name_of_gpus(const std::vector<GpuDescription>& gpus) {
  std::vector<int> numbers;
  numbers.reserve(gpus.size());
  for (const GpuDescription& gpu : gpus) numbers.push_back(gpu.index);
  return device_name(numbers);
}

void check_one_type(const std::string& asked, const std::vector<GpuDescription>& gpus) {
  const GpuDescription& first = gpus.front();
  const auto other = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const GpuDescription& gpu) { return !of_one_type(gpu, first); });
  if (other == gpus.end()) return;
  std::vector<GpuDescription> alike;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(alike),
               [&](const GpuDescription& gpu) { return of_one_type(gpu, first); });
  throw_error<InvalidArgument>(
      "--device {}: {} and {} differ, and results have the same bits on one type of GPU only: use GPUs of "
      "one type, such as --device {}.",
      asked, type_of(first), type_of(*other), name_of_gpus(alike));
}

/// Refuses a GPU that no ranker can use.
DeviceChoice checked(DeviceChoice choice, const Configuration& configuration) {
  const std::vector<RankerSettings>& rankers = configuration.rankers;
  const auto taken = [&](const RankerSettings& ranker) { return choice.takes(ranker); };
  if (choice.on_gpus() && !rankers.empty() && std::none_of(rankers.begin(), rankers.end(), taken)) {
    const RankerSettings& first = rankers.front();
    throw_error<InvalidArgument>(
        "--device {}: No ranker of this configuration can run on a GPU: '{}' cannot, as {}. Use --device "
        "cpu.",
        configuration.run.device, first.name, *why_not_on_device(first));
  }
  return choice;
}

}  // namespace

std::string DeviceChoice::name() const {
  return name_of_gpus(gpus);
}

bool DeviceChoice::takes(const RankerSettings& ranker) const {
  return on_gpus() && !why_not_on_device(ranker);
}

std::vector<GpuDescription> gpus_for(const std::string& asked) {
  if (!parse_device(asked).on_gpus()) return {};  // asking the driver is slow
  std::vector<GpuDescription> gpus = gpus_for(asked, visible_gpus());
  for (GpuDescription& gpu : gpus) gpu.free_bytes = free_bytes_of(gpu);
  return gpus;
}

std::vector<GpuDescription> gpus_for(const std::string& asked, const GpuSurvey& survey) {
  const DeviceRequest request = parse_device(asked);
  if (!request.on_gpus()) return {};
  if (!survey.built_with_cuda) throw NotBuiltWithCuda(fmt::format("--device {}", asked));
  if (survey.gpus.empty()) {
    throw_error<InvalidArgument>("--device {}: There is no GPU: {}. Use --device cpu.", asked,
                                 survey.absence);
  }
  check_libraries(asked, survey);
  std::vector<GpuDescription> gpus;
  for (const int number : numbers_of(asked, request, static_cast<int>(survey.gpus.size()))) {
    gpus.push_back(survey.gpus[number]);
    check_capability(asked, gpus.back(), survey);
  }
  check_one_type(asked, gpus);
  return gpus;
}

std::optional<std::string> why_no_gpu(const GpuSurvey& survey) {
  if (survey.gpus.empty()) return survey.absence;
  try {
    gpus_for("cuda", survey);
  } catch (const InvalidArgument& refusal) {
    return refusal.what();
  }
  return std::nullopt;
}

std::optional<RankerDevice> ranker_device_for(std::string_view subject, const std::string& asked,
                                              const RankerSettings& settings) {
  const std::optional<GpuDescription> gpu = gpu_for(asked);
  if (!gpu) return std::nullopt;
  if (const auto reason = why_not_on_device(settings)) {
    throw_error<InvalidArgument>("{}: A '{}' cannot run on a GPU, as {}: use {}.", subject,
                                 name_of(settings.kind), *reason,
                                 subject.starts_with("--") ? "--device cpu" : "device = \"cpu\"");
  }
  RankerDevice place;
  place.gpu = gpu->index;
  place.memory = std::max<std::int64_t>(1, gpu->free_bytes);
  return place;
}

std::optional<GpuDescription> gpu_for(const std::string& asked) {
  const std::vector<GpuDescription> gpus = gpus_for(asked);
  if (gpus.empty()) return std::nullopt;
  if (gpus.size() > 1) {
    throw_error<InvalidArgument>("--device {}: This command uses one GPU: name one, such as cuda:{}.",
                                 asked, gpus.front().index);
  }
  return gpus.front();
}

DeviceChoice choose_device(const Configuration& configuration) {
  return checked({gpus_for(configuration.run.device)}, configuration);
}

DeviceChoice choose_device(const Configuration& configuration, const GpuSurvey& survey) {
  return checked({gpus_for(configuration.run.device, survey)}, configuration);
}

GpuSlots::GpuSlots(std::vector<GpuDescription> gpus, std::int64_t jobs)
    : gpus_(std::move(gpus)), jobs_(jobs) {}

GpuSlots GpuSlots::of(const Configuration& configuration, const DeviceChoice& device) {
  const auto trials = std::ssize(configuration.rankers) * std::ssize(configuration.clicks.models) *
                      std::ssize(configuration.data.folds) * std::ssize(configuration.protocol.seeds);
  const std::int64_t jobs = std::max<std::int64_t>(configuration.run.jobs, std::ssize(device.gpus));
  return {device.gpus, std::clamp<std::int64_t>(jobs, 1, std::max<std::int64_t>(1, trials))};
}

const GpuDescription& GpuSlots::gpu_of(std::int64_t slot) const {
  return gpus_[slot % std::ssize(gpus_)];
}

std::int64_t GpuSlots::slots_on(std::int64_t place) const {
  const auto count = std::ssize(gpus_);
  return (jobs_ - place + count - 1) / count;
}

std::int64_t GpuSlots::bytes_on(std::int64_t place, std::int64_t data, std::int64_t folds) const {
  const std::int64_t slots = std::max<std::int64_t>(1, slots_on(place));  // of an unused GPU: one
  const std::int64_t left = gpus_[place].free_bytes - std::min(slots, folds) * data;
  return std::max<std::int64_t>(0, left / slots);
}

std::int64_t GpuSlots::tightest(std::int64_t data, std::int64_t folds) const {
  std::int64_t found = 0;
  for (std::int64_t place = 1; place < std::min(jobs_, std::ssize(gpus_)); ++place) {
    if (bytes_on(place, data, folds) < bytes_on(found, data, folds)) found = place;
  }
  return found;
}

std::string GpuSlots::other_slots_for(std::int64_t bytes, std::int64_t data, std::int64_t folds) const {
  const auto fits = [&](const GpuSlots& slots) {
    return slots.bytes_on(slots.tightest(data, folds), data, folds) >= bytes;
  };
  std::vector<std::string> ways;
  for (std::int64_t jobs = jobs_ - 1; jobs >= std::ssize(gpus_); --jobs) {
    if (!fits({gpus_, jobs})) continue;
    ways.push_back(fmt::format("--jobs {}", jobs));
    break;
  }
  std::vector<GpuDescription> roomy;
  for (std::int64_t place = 0; place < std::ssize(gpus_); ++place) {
    if (bytes_on(place, data, folds) >= bytes) roomy.push_back(gpus_[place]);
  }
  if (!roomy.empty() && roomy.size() < gpus_.size()) {
    const std::int64_t jobs = jobs_ * std::ssize(roomy) / std::ssize(gpus_);
    const GpuSlots fewer(roomy, std::max<std::int64_t>(jobs, std::ssize(roomy)));
    if (fits(fewer))
      ways.push_back(fmt::format("--device {}{}", name_of_gpus(roomy),
                                 fewer.jobs() < jobs_ ? fmt::format(" --jobs {}", fewer.jobs()) : ""));
  }
  return ways.empty() ? "" : fmt::format(" as would {}", fmt::join(ways, " or "));
}

}  // namespace olrank
