#include "bench/device/device_report.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <chrono>

#include "bench/device/libtorch_forms.h"
#include "core/error.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// The largest ratio of N networks' time to one network's, by n.
const std::map<std::int64_t, double> kMostOfMembers{{100, 1.5}, {1000, 3.0}, {10'000, 8.0}};

ordered_json rates_json(const PeakRates& rates) {
  return {{"copy", rates.copy},
          {"gemm float", rates.gemm_float},
          {"gemm tf32", rates.gemm_tf32},
          {"gemm double", rates.gemm_double}};
}

ordered_json verdict_json(const Verdict& verdict) {
  return {{"what", verdict.what},
          {"measured", verdict.measured},
          {"target", verdict.wanted},
          {"at_most", verdict.at_most},
          {"ok", verdict.ok()}};
}

std::string verdict_text(const Verdict& verdict) {
  return fmt::format("    {:<7} {}: {:.2f}, {} {:.2f}\n", verdict.ok() ? "OK" : "missed", verdict.what,
                     verdict.measured, verdict.at_most ? "at most" : "at least", verdict.wanted);
}

}  // namespace

void check_member_targets(std::vector<DeviceRow>& rows) {
  for (DeviceRow& row : rows) {
    const Measurement& one = row.measurement;
    const std::int64_t members = parameter_of(one.parameters, "N");
    const std::int64_t n = parameter_of(one.parameters, "n");
    const auto wanted = kMostOfMembers.find(n);
    if (one.name != "training/step" || members <= 1 || wanted == kMostOfMembers.end()) continue;
    const auto alone = std::find_if(rows.begin(), rows.end(), [&](const DeviceRow& other) {
      return other.measurement.name == one.name && parameter_of(other.measurement.parameters, "N") == 1 &&
             parameter_of(other.measurement.parameters, "n") == n;
    });
    if (alone == rows.end()) continue;
    row.verdicts.push_back({fmt::format("N = {} over N = 1", members),
                            one.seconds.median / alone->measurement.seconds.median, wanted->second, true});
  }
}

std::string device_table(const std::vector<DeviceRow>& rows) {
  std::vector<Measurement> measurements;
  measurements.reserve(rows.size());
  for (const DeviceRow& row : rows) measurements.push_back(row.measurement);
  std::string text = measurements_text({{}, {}, measurements, {}});
  text += "\nCompared with LibTorch, and targets:\n";
  for (const DeviceRow& row : rows) {
    if (row.libtorch.repeats == 0 && row.verdicts.empty()) continue;
    text += "  " + row.measurement.identity();
    if (row.libtorch.repeats > 0)
      text += fmt::format(": {:.2f} times as fast as LibTorch's graph, difference {:.2g}", row.ratio(),
                          row.disagreement);
    text += "\n";
    for (const Verdict& verdict : row.verdicts) text += verdict_text(verdict);
  }
  return text;
}

std::string device_json(const std::string& command, const DeviceDescription& device,
                        const std::vector<DeviceRow>& rows) {
  MeasurementFile file{command, this_machine(), {}, {}};
  for (const DeviceRow& row : rows) file.measurements.push_back(row.measurement);
  ordered_json json = ordered_json::parse(measurements_json(file));
  json["machine"]["gpu"] = device.name;
  json["ceilings"] = rates_json(device.rates);
  if (device.rates_at_end) json["ceilings_at_end"] = rates_json(*device.rates_at_end);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ordered_json& one = json["measurements"][i];
    if (rows[i].libtorch.repeats > 0) {
      one["libtorch"] = {{"seconds", spread_json(rows[i].libtorch)},
                         {"captured", rows[i].captured},
                         {"ratio", rows[i].ratio()},
                         {"disagreement", rows[i].disagreement}};
    }
    one["targets"] = ordered_json::array();
    for (const Verdict& verdict : rows[i].verdicts) one["targets"].push_back(verdict_json(verdict));
  }
  return json.dump(2) + "\n";
}

namespace {

constexpr std::int64_t kSmallCopy = std::int64_t{1} << 27;  // beyond every cache
constexpr double kWarmUpSeconds = 0.5;

double copy_rate(const DeviceSizes& sizes, std::int64_t bytes) {
  const at::Tensor from = at::zeros({bytes}, options_of(sizes, at::kByte));
  const at::Tensor to = at::empty_like(from);
  return 2.0 * real(bytes) / device_seconds([&] { to.copy_(from); }).min;
}

double gemm_rate(const DeviceSizes& sizes, at::ScalarType type, std::int64_t side, double warm_up) {
  const at::TensorOptions options = options_of(sizes, type);
  const at::Tensor a = at::randn({side, side}, options);
  const at::Tensor b = at::randn({side, side}, options);
  at::Tensor c = at::empty_like(a);
  const auto multiply = [&] { at::mm_out(c, a, b); };
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (spent() < warm_up) {
    multiply();
    c[0][0].item<double>();  // waits
  }
  const double n = real(side);
  return 2.0 * n * n * n / device_seconds(multiply).min;
}

}  // namespace

DeviceCeilings DeviceCeilings::measured(const DeviceSizes& sizes) {
  if (at::globalContext().allowTF32CuBLAS())
    throw Error("TF32 is enabled in LibTorch, so float32 products cannot be measured.");
  const std::int64_t side = sizes.on_gpu ? 8192 : 64;
  DeviceCeilings ceilings(sizes);
  ceilings.rates_.gemm_float = gemm_rate(sizes, at::kFloat, side, sizes.on_gpu ? kWarmUpSeconds : 0.0);
  at::globalContext().setAllowTF32CuBLAS(true);
  ceilings.rates_.gemm_tf32 = gemm_rate(sizes, at::kFloat, side, 0.0);
  at::globalContext().setAllowTF32CuBLAS(false);
  ceilings.rates_.gemm_double = gemm_rate(sizes, at::kDouble, side / 4 * 3, 0.0);
  ceilings.rates_.copy = copy_rate(sizes, std::int64_t{1} << (sizes.on_gpu ? 31 : 20));
  return ceilings;
}

double DeviceCeilings::copy_of(double bytes) {
  const auto half = static_cast<std::int64_t>(0.5 * bytes);
  if (half >= kSmallCopy) return rates_.copy;
  const auto size = std::bit_ceil(static_cast<unsigned long long>(std::max<std::int64_t>(half, 4096)));
  const auto [place, is_new] = small_copies_.try_emplace(static_cast<long long>(size), 0.0);
  if (is_new) place->second = std::max(rates_.copy, copy_rate(sizes_, static_cast<std::int64_t>(size)));
  return place->second;
}

DeviceCeilings::Binding DeviceCeilings::binding(const DeviceCase& work) {
  const LeastWork& least = work.least;
  Binding products{"gemm double", rates_.gemm_double};
  if (least.arithmetic == Arithmetic::kFloat) products = {"gemm float", rates_.gemm_float};
  if (least.arithmetic == Arithmetic::kTf32x3) products = {"gemm tf32 / 3", rates_.gemm_tf32 / 3.0};
  products.least_time = least.operations / products.value;
  const double copy = copy_of(least.bytes);
  const double by_bytes = least.bytes / copy;
  if (products.least_time >= by_bytes) return products;
  return {"copy", copy, by_bytes};
}

}  // namespace olrank
