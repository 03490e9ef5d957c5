#include "jobs/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/runtime/device.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
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

// Seconds of the records in docs/evidence; tests/style/figures_test.py compares them. Networks have
// 100 hidden units and 136 features there, and times grow with the number of their parameters.
constexpr double kParameters = 13'700.0;
// The CPU: RESULTS-TABLES, a diagonal covariance on one core over 1,000 rounds, of which each trains on all
// pairs before it; benchmarks.json, a round of `retrain = "growth"`, and a document of `olrank train`.
constexpr double kCoreRoundAfterThousand = 18.0e-3;
constexpr double kCoreRoundByGrowth = 6.45e-3;
constexpr double kCoreDocument = 8.94e-7;
// A GPU: 2026-11-27-h100, the start of a program, 1,000 rounds and 5,000 rounds, ten members over one, and
// 16 trials at once over one; a document of `olrank train` with a linear model and with this network.
constexpr double kGpuStart = 0.99;
constexpr double kGpuThousandRounds = 0.80;
constexpr double kGpuFiveThousandRounds = 7.46;
constexpr double kTenMembersOverOne = 2.50;
constexpr double kGainOfJobs = 1.48;
constexpr double kGpuDocumentLinear = 1.37e-8;
constexpr double kGpuDocument = 2.53e-8;

double core_seconds(const NetworkTrials& work) {
  const auto rounds = static_cast<double>(work.rounds);
  const double of_round = work.by_growth ? kCoreRoundByGrowth : kCoreRoundAfterThousand * rounds / 1000.0;
  return rounds * of_round * static_cast<double>(work.parameters * work.members) / kParameters;
}

/// A round takes what its short kernels take, and what grows with the pairs, a line through both trials.
double gpu_seconds(const NetworkTrials& work) {
  constexpr double kGrowth = (kGpuFiveThousandRounds / 5.0 - kGpuThousandRounds) / 4.0;
  const double thousands = static_cast<double>(work.rounds) / 1000.0;
  const double size = static_cast<double>(work.parameters) / kParameters;
  const double members = 1.0 + static_cast<double>(work.members - 1) * (kTenMembersOverOne - 1.0) / 9.0;
  return thousands * (kGpuThousandRounds - kGrowth + kGrowth * thousands * size) * members;
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

std::string DeviceTimes::text() const {
  return fmt::format("about {} on a GPU, {} on the CPU", readable_duration(gpu), readable_duration(cpu));
}

DeviceTimes times_of(std::span<const NetworkTrials> work, std::int64_t jobs, std::int64_t seats) {
  std::int64_t trials = 0;
  DeviceTimes times;
  for (const NetworkTrials& network : work) {
    trials += network.trials;
    times.cpu += static_cast<double>(network.trials) * core_seconds(network);
    times.gpu += static_cast<double>(network.trials) * gpu_seconds(network);
  }
  const std::int64_t at_once = std::max<std::int64_t>(1, std::min(jobs, trials));
  times.cpu /= static_cast<double>(at_once);
  if (at_once > 1 && seats != 1) times.gpu /= kGainOfJobs;
  times.gpu += kGpuStart;
  return times;
}

DeviceTimes times_of_training(std::int64_t docs, std::int64_t parameters, std::int64_t passes,
                              int threads) {
  const double all = static_cast<double>(docs) * static_cast<double>(passes);
  const double size = static_cast<double>(parameters) / kParameters;
  return {all * kCoreDocument * size / std::max(1, threads),
          kGpuStart + all * (kGpuDocumentLinear + (kGpuDocument - kGpuDocumentLinear) * size)};
}

DeviceAdvice faster_device(const DeviceTimes& times, const GpuSurvey& survey) {
  if (!times.gpu_is_faster()) return {"auto", fmt::format("The CPU computes this: {}.", times.text())};
  if (auto reason = why_no_gpu(survey)) {
    if (reason->ends_with('.')) reason->pop_back();
    return {"auto", fmt::format("The CPU computes this, as no GPU can be used: {}.", *reason)};
  }
  const GpuDescription gpu = gpus_for("cuda", survey).front();
  return {fmt::format("cuda:{}", gpu.index),
          fmt::format("cuda:{} ({}) computes this: {}.", gpu.index, gpu.name, times.text())};
}

std::string device_of_resumed(std::string_view before) {
  const bool on_cpu = before == "cpu";
  log_info("{} continues what {} began.", on_cpu ? "The CPU" : "cuda:0", on_cpu ? "it" : before);
  return on_cpu ? "auto" : "cuda";
}

std::string meaning_of_auto(const GpuSurvey& survey) {
  if (why_no_gpu(survey)) return "the CPU, as no GPU can be used";
  return "cuda:0 for networks whose trials are faster there and for many labels; the CPU for linear "
         "rankers, clickgp, small networks and services";
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

std::int64_t GpuSlots::jobs_with(std::int64_t bytes, std::int64_t data, std::int64_t folds) const {
  for (std::int64_t jobs = jobs_; jobs >= std::min(jobs_, std::ssize(gpus_)); --jobs) {
    const GpuSlots slots(gpus_, jobs);
    if (slots.bytes_on(slots.tightest(data, folds), data, folds) >= bytes) return jobs;
  }
  return 0;
}

std::string GpuSlots::other_gpus_for(std::int64_t bytes, std::int64_t data) const {
  std::vector<GpuDescription> roomy;
  for (const GpuDescription& gpu : gpus_) {
    if (gpu.free_bytes - data >= bytes) roomy.push_back(gpu);
  }
  if (roomy.empty() || roomy.size() == gpus_.size()) return "";
  return fmt::format(", as would --device {}", name_of_gpus(roomy));
}

}  // namespace olrank
