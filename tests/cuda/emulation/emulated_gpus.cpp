// The device contract on emulated GPUs, which makes an olrank that has as many GPUs as its environment
// says: OLRANK_EMULATED_GPUS="Card A=8GB,Card A=8GB,Card B=4GB" lists their names and free memory; one
// of no size, such as "Card A=busy", cannot be used.
// OLRANK_EMULATED_FAILURE="cuda:1" lets that one fail in its fourth query.
// OLRANK_EMULATED_SCHEDULE is forward (the default), backward or random. OLRANK_EMULATED_LOG names a file
// that gets a line for each network: the GPU on which it was made.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device_network.h"
#include "core/device/visible_gpus.h"
#include "core/error.h"
#include "core/io/state_archive.h"
#include "core/runtime/device.h"
#include "core/text/byte_size.h"
#include "cuda/engine/resident_network.h"
#include "tests/cuda/emulation/device_memory.h"
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
    if (schedule == "backward") emulation::set_schedule(emulation::Schedule::kBackward);
    if (schedule == "random") emulation::set_schedule(emulation::Schedule::kRandom);
    return made;
  }();
  return survey;
}

/// The emulator works for one thread at a time.
std::mutex& emulator_lock() {
  static std::mutex mutex;
  return mutex;
}

template <class Call>
auto locked(const Call& call) {
  const std::lock_guard lock(emulator_lock());
  return call();
}

/// Values on their way from an emulated GPU; what it passes on no longer needs the emulator.
class LockedArrival : public ByteArrival {
 public:
  explicit LockedArrival(std::shared_ptr<ByteArrival> arrival) : arrival_(std::move(arrival)) {}
  ~LockedArrival() override {
    const std::lock_guard lock(emulator_lock());
    arrival_.reset();
  }
  bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool wait) override {
    std::vector<std::shared_ptr<std::vector<std::byte>>> arrived;
    const bool all = locked([&] {
      return arrival_->pass_on(
          [&](const ArrivedBytes& one) {
            arrived.push_back(std::make_shared<std::vector<std::byte>>(one.bytes.begin(), one.bytes.end()));
          },
          wait);
    });
    for (const auto& bytes : arrived) sink({*bytes, bytes});
    return all;
  }

 private:
  std::shared_ptr<ByteArrival> arrival_;
};

/// A network that several threads may use, each one its own.
class LockedNetwork : public DeviceNetwork {
 public:
  explicit LockedNetwork(const DeviceNetworkSpec& spec) {
    const std::lock_guard lock(emulator_lock());
    network_ = emulated::make_network(spec);
    const std::string gpu = device_name(std::span(&spec.device, 1));
    fails_ = gpu == variable("OLRANK_EMULATED_FAILURE");
    const std::string log = variable("OLRANK_EMULATED_LOG");
    if (!log.empty()) std::ofstream(log, std::ios::app) << gpu << '\n';
  }
  ~LockedNetwork() override {
    const std::lock_guard lock(emulator_lock());
    network_.reset();
  }
  DeviceOrders score_query(DeviceQuery query) override {
    if (fails_ && ++queries_ == 4) throw CudaError("The emulated GPU has failed.");
    return locked([&] { return network_->score_query(query); });
  }
  void describe(std::span<float> scores, std::span<double> width_sq) override {
    locked([&] { network_->describe(scores, width_sq); });
  }
  DeviceComparison compare(ExecutionContext& context, std::span<const std::int32_t> shown) override {
    return locked([&] { return network_->compare(context, shown); });
  }
  void learn(const DeviceUpdate& update) override {
    locked([&] { network_->learn(update); });
  }
  std::vector<double> steps() override {
    return locked([&] { return network_->steps(); });
  }
  std::string_view full_form() const override {
    return locked([&] { return network_->full_form(); });
  }
  bool grows_in_place() const override {
    return locked([&] { return network_->grows_in_place(); });
  }
  void switch_to_primal() override {
    locked([&] { network_->switch_to_primal(); });
  }
  DeviceHealth health() override {
    return locked([&] { return network_->health(); });
  }
  void begin_scores(FeatureMatrix docs) override {
    locked([&] { network_->begin_scores(docs); });
  }
  bool scores_ready() override {
    return locked([&] { return network_->scores_ready(); });
  }
  void finish_scores(std::span<float> scores) override {
    locked([&] { network_->finish_scores(scores); });
  }
  std::vector<float> theta() override {
    return locked([&] { return network_->theta(); });
  }
  void add_seconds(StageClock& clock) override {
    locked([&] { network_->add_seconds(clock); });
  }
  void save(StateWriter& state) override {
    const std::size_t before = state.new_bytes().size();
    locked([&] { network_->save(state); });
    for (std::size_t i = before; i < state.new_bytes().size(); ++i) {
      std::shared_ptr<ByteArrival>& arrival = state.new_bytes()[i].arrival;
      arrival = std::make_shared<LockedArrival>(std::move(arrival));
    }
  }
  void load(StateReader& state, const DeviceHistory& history) override {
    locked([&] { network_->load(state, history); });
  }

 private:
  std::unique_ptr<DeviceNetwork> network_;
  bool fails_ = false;
  int queries_ = 0;
};

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

void sleep_while_waiting(const GpuDescription&) {}

std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec& spec) {
  survey_of_emulator();
  return std::make_unique<LockedNetwork>(spec);
}

}  // namespace olrank
