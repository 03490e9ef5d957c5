// The device contract on emulated GPUs, which makes an olrank that has as many GPUs as its environment
// says: OLRANK_EMULATED_GPUS="Card A=8GB,Card A=8GB,Card B=4GB" lists their names and free memory; one
// of no size, such as "Card A=busy", cannot be used.
// OLRANK_EMULATED_FAILURE="cuda:1" lets a start of its network's work fail.
// OLRANK_EMULATED_SCHEDULE is forward (the default), backward or random. OLRANK_EMULATED_LOG names a file
// that gets a line for each network: the GPU on which it was made; OLRANK_EMULATED_SLEEPS one for each GPU
// for which threads wait asleep.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device_network.h"
#include "core/device/visible_gpus.h"
#include "core/error.h"
#include "core/runtime/device.h"
#include "core/text/message_text.h"
#include "cuda/engine/device_network.h"
#include "cuda/runtime/device_array.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/device_work.h"
#include "tests/cuda/emulation/emulator.h"

namespace olrank {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

GpuSurvey emulated_survey() {
  GpuSurvey survey;
  survey.built_with_cuda = true;
  survey.least_capability = 90;
  survey.absence = "OLRANK_EMULATED_GPUS names none";
  const std::string list = variable("OLRANK_EMULATED_GPUS");
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string gpu = list.substr(begin, end - begin);
    const std::size_t sign = gpu.find('=');
    const std::int64_t bytes = parse_bytes(gpu.substr(sign + 1)).value_or(0);
    survey.gpus.push_back({.index = static_cast<int>(survey.gpus.size()),
                           .name = gpu.substr(0, sign),
                           .capability_major = 9,
                           .multiprocessors = 132,
                           .total_bytes = bytes,
                           .free_bytes = bytes});
    survey.absence.clear();
    begin = end + 1;
  }
  return survey;
}

/// Sets the emulator up on first use.
const GpuSurvey& survey_of_emulator() {
  static const GpuSurvey survey = [] {
    GpuSurvey made = emulated_survey();
    emulation::set_device_count(static_cast<int>(made.gpus.size()));
    const std::string schedule = variable("OLRANK_EMULATED_SCHEDULE");
    if (schedule == "backward") emulation::machine.schedule = emulation::Schedule::kBackward;
    if (schedule == "random") emulation::machine.schedule = emulation::Schedule::kRandom;
    return made;
  }();
  return survey;
}

/// Appends a line to the file that the variable names, if it names one.
void write_to(const char* file_variable, const std::string& gpu) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string log = variable(file_variable);
  if (!log.empty()) std::ofstream(log, std::ios::app) << gpu << '\n';
}

}  // namespace

GpuSurvey visible_gpus() {
  GpuSurvey survey = survey_of_emulator();
  for (GpuDescription& gpu : survey.gpus) gpu.free_bytes = 0;
  return survey;
}

std::int64_t free_bytes_of(const GpuDescription& gpu) {
  const std::int64_t bytes = survey_of_emulator().gpus.at(gpu.index).free_bytes;
  if (bytes == 0) throw CudaError(fmt::format("cuda:{} cannot be used now.", gpu.index));
  return bytes;
}

std::optional<int> selected_gpu() {
  const int gpu = emulation::selected_device();
  return emulation::has_context(gpu) ? std::optional(gpu) : std::nullopt;
}

void select_gpu(int gpu) noexcept {
  emulation::select_device(gpu);
}

void sleep_while_waiting(const GpuDescription& gpu) {
  write_to("OLRANK_EMULATED_SLEEPS", fmt::format("cuda:{}", gpu.index));
}

std::optional<int> libtorch_number_of(int) {
  return std::nullopt;
}

std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec& spec) {
  survey_of_emulator();
  const std::string gpu = device_name(std::span(&spec.device, 1));
  write_to("OLRANK_EMULATED_LOG", gpu);
  constexpr int kStarts = 60;  // a few rounds
  if (gpu == variable("OLRANK_EMULATED_FAILURE")) emulation::let_device_fail(spec.device, kStarts);
  return emulated::make_network(spec);
}

std::shared_ptr<DeviceBatch> make_device_batch(int device, std::int64_t seats) {
  survey_of_emulator();
  return emulated::make_batch(device, seats);
}

std::unique_ptr<DeviceLists> make_device_lists(const DeviceListsSpec& spec) {
  survey_of_emulator();
  write_to("OLRANK_EMULATED_LOG", device_name(std::span(&spec.device, 1)));
  return emulated::make_lists(spec);
}

std::shared_ptr<DeviceIntake> make_device_intake(int device) {
  survey_of_emulator();
  return emulated::make_intake(device);
}

}  // namespace olrank

/// Memory of an emulated GPU with these values, which stays: what another library has made there.
extern "C" const float* olrank_emulated_upload(int gpu, const float* values, std::int64_t count) {
  const int before = olrank::emulation::selected_device();
  olrank::emulation::select_device(gpu);
  const auto* made =
      new olrank::emulated::DeviceArray<float>(std::span(values, static_cast<std::size_t>(count)));
  olrank::emulation::select_device(before);
  return made->data();
}
