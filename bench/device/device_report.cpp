#include "bench/device/device_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// The largest ratio of N networks' time to one network's, by n.
const std::map<std::int64_t, double> kMostOfMembers{{100, 1.5}, {1000, 3.0}, {10'000, 8.0}};

std::int64_t parameter(const Measurement& one, const std::string& name) {
  for (const auto& [key, value] : one.parameters)
    if (key == name) return value;
  return 0;
}

ordered_json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}, {"repeats", spread.repeats}};
}

ordered_json rates_json(const PeakRates& rates) {
  return {{"copy", rates.copy}, {"gemm float", rates.gemm_float}, {"gemm double", rates.gemm_double}};
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
    const std::int64_t members = parameter(one, "N");
    const std::int64_t n = parameter(one, "n");
    const auto wanted = kMostOfMembers.find(n);
    if (one.name != "training/step" || members <= 1 || wanted == kMostOfMembers.end()) continue;
    const auto alone = std::find_if(rows.begin(), rows.end(), [&](const DeviceRow& other) {
      return other.measurement.name == one.name && parameter(other.measurement, "N") == 1 &&
             parameter(other.measurement, "n") == n;
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
    if (row.libtorch.repeats == 0 && row.verdicts.empty() && row.cold.repeats == 0) continue;
    text += "  " + row.measurement.identity();
    if (row.libtorch.repeats > 0)
      text += fmt::format(
          ": {:.2f} times as fast as LibTorch's graph ({:.2f} times as its single calls), difference "
          "{:.2g}",
          row.ratio(), row.started_ratio(), row.disagreement);
    if (row.cold.repeats > 0) text += fmt::format("; {:.1f} µs with cold caches", 1e6 * row.cold.median);
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
                         {"started", spread_json(rows[i].started)},
                         {"captured", rows[i].captured},
                         {"ratio", rows[i].ratio()},
                         {"started_ratio", rows[i].started_ratio()},
                         {"disagreement", rows[i].disagreement}};
    }
    if (rows[i].cold.repeats > 0)
      one["cold"] = {{"seconds", spread_json(rows[i].cold)}, {"share_of_copy", rows[i].cold_share}};
    one["targets"] = ordered_json::array();
    for (const Verdict& verdict : rows[i].verdicts) one["targets"].push_back(verdict_json(verdict));
  }
  return json.dump(2) + "\n";
}

}  // namespace olrank
