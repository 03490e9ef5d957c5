#include "bench/measurement_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/ops/blas.h"
#include "core/runtime/device.h"
#include "core/runtime/execution_context.h"
#include "core/text/text_table.h"
#include "core/throw_error.h"
#include "core/version.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

double number_of(const ordered_json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

ordered_json measurement_json(const Measurement& one) {
  ordered_json parameters = ordered_json::object();
  for (const auto& [key, value] : one.parameters) parameters[key] = value;
  ordered_json ceiling = nullptr;
  if (!one.ceiling.empty()) ceiling = {{"name", one.ceiling}, {"value", number_or_null(one.ceiling_value)}};
  return {{"name", one.name},
          {"device", one.device},
          {"parameters", std::move(parameters)},
          {"seconds", spread_json(one.seconds)},
          {"operations", one.operations},
          {"bytes", one.bytes},
          {"ceiling", std::move(ceiling)},
          {"share", number_or_null(one.share)}};
}

Measurement read_measurement(const ordered_json& json) {
  Measurement one;
  one.name = json.at("name").get<std::string>();
  one.device = json.at("device").get<std::string>();
  for (const auto& [key, value] : json.at("parameters").items())
    one.parameters.emplace_back(key, value.get<std::int64_t>());
  const ordered_json& seconds = json.at("seconds");
  one.seconds = {seconds.at("median").get<double>(), seconds.at("min").get<double>(),
                 seconds.at("max").get<double>(), seconds.at("repeats").get<std::int64_t>()};
  one.operations = json.at("operations").get<double>();
  one.bytes = json.at("bytes").get<double>();
  one.ceiling_value = std::nan("");
  if (const ordered_json& ceiling = json.at("ceiling"); !ceiling.is_null()) {
    one.ceiling = ceiling.at("name").get<std::string>();
    one.ceiling_value = number_of(ceiling.at("value"));
  }
  one.share = number_of(json.at("share"));
  one.least_share = one.share;
  return one;
}

std::string time_text(double seconds) {
  if (seconds >= 1.0) return fmt::format("{:.3f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", 1e3 * seconds);
  return fmt::format("{:.2f} us", 1e6 * seconds);
}

}  // namespace

ordered_json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}, {"repeats", spread.repeats}};
}

Machine this_machine() {
  return {cpu_model(),
          available_threads(),
          blas::library_name(),
          std::string(compiler()),
          fmt::format("{} ({})", version(), revision()),
          utc_now().substr(0, std::string_view("2026-01-31").size())};
}

ordered_json machine_json(const Machine& machine) {
  return {{"processor", machine.processor}, {"cores", machine.cores},     {"blas", machine.blas},
          {"compiler", machine.compiler},   {"version", machine.version}, {"date", machine.date}};
}

std::string measurements_json(const MeasurementFile& file) {
  ordered_json json = {{"command", file.command},
                       {"machine", machine_json(file.machine)},
                       {"measurements", ordered_json::array()}};
  for (const Measurement& one : file.measurements) json["measurements"].push_back(measurement_json(one));
  for (const FittedExponent& fitted : file.exponents) {
    json["exponents"].push_back({{"stage", fitted.stage},
                                 {"axis", fitted.axis},
                                 {"exponent", number_or_null(fitted.exponent)},
                                 {"last_half", number_or_null(fitted.last_half)}});
  }
  if (std::isfinite(file.unit_seconds))
    json["unit"] = {
        {"name", ProductUnit::kName}, {"side", ProductUnit::kSide}, {"seconds", file.unit_seconds}};
  return json.dump(2) + "\n";
}

MeasurementFile read_measurements(const std::filesystem::path& file) {
  MeasurementFile read;
  try {
    const ordered_json json = parse_ordered_json(read_file(file, kLargestJson));
    const ordered_json& machine = json.at("machine");
    const auto text = [&](const char* key) { return machine.at(key).get<std::string>(); };
    read.command = json.at("command").get<std::string>();
    read.machine = {text("processor"), machine.at("cores").get<std::int64_t>(),
                    text("blas"),      text("compiler"),
                    text("version"),   text("date")};
    for (const ordered_json& one : json.at("measurements"))
      read.measurements.push_back(read_measurement(one));
    if (const auto unit = json.find("unit"); unit != json.end())
      read.unit_seconds = unit->at("seconds").get<double>();
  } catch (const nlohmann::json::exception&) {
    throw_error<IoError>("{}: Not a measurement file of 'olrank bench … --json FILE'.", file.string());
  }
  return read;
}

std::string measurements_text(const MeasurementFile& file, std::int64_t columns) {
  std::vector<TextTable::Column> headers = {{.header = "name", .is_name = true},
                                            {.header = "parameters", .is_name = true},
                                            {.header = "median"},
                                            {.header = "spread", .dropped = 2}};
  const bool has_unit = std::isfinite(file.unit_seconds);
  if (has_unit) {
    headers.push_back({.header = "GEMM"});
  } else {
    headers.insert(headers.end(), {{.header = "GFLOP/s", .dropped = 3},
                                   {.header = "ceiling", .dropped = 1},
                                   {.header = "share", .dropped = 4}});
  }
  TextTable table(std::move(headers));
  for (const Measurement& one : file.measurements) {
    std::string parameters;
    for (const auto& [key, value] : one.parameters)
      parameters += fmt::format("{}{}={}", parameters.empty() ? "" : " ", key, value);
    std::vector<std::string> cells = {
        one.name, parameters, time_text(one.seconds.median),
        fmt::format("{:.0f}%", 100.0 * (one.seconds.max - one.seconds.min) / one.seconds.median)};
    if (has_unit) {
      cells.push_back(fmt::format("{:.3g}", one.seconds.median / file.unit_seconds));
    } else {
      cells.push_back(
          one.operations > 0.0 ? fmt::format("{:.2f}", 1e-9 * one.operations / one.seconds.median) : "–");
      cells.push_back(one.ceiling.empty() ? "–" : one.ceiling);
      cells.push_back(std::isfinite(one.share) ? fmt::format("{:.2f}", one.share) : "–");
    }
    table.add(std::move(cells));
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  std::string text = fitted.text + hidden_columns_text(fitted.hidden, columns);
  if (has_unit) {
    text += fmt::format("\nGEMM: multiples of a {0} × {0} × {0} float product on one thread, {1} here.\n",
                        ProductUnit::kSide, time_text(file.unit_seconds));
  }
  return text;
}

std::vector<SlowDown> slow_downs(const MeasurementFile& before, const MeasurementFile& now) {
  std::vector<SlowDown> changes;
  for (const Measurement& one : now.measurements) {
    const auto found =
        std::find_if(before.measurements.begin(), before.measurements.end(),
                     [&](const Measurement& other) { return other.identity() == one.identity(); });
    if (found == before.measurements.end()) continue;
    const bool by_share = std::isfinite(one.share) && std::isfinite(found->share) && one.share > 0.0;
    const double ratio = by_share ? found->share / one.share : one.seconds.median / found->seconds.median;
    const double low = one.seconds.min / one.seconds.median * found->seconds.median / found->seconds.max;
    const double high = one.seconds.max / one.seconds.median * found->seconds.median / found->seconds.min;
    changes.push_back({one.identity(), ratio, ratio * low, ratio * high});
  }
  return changes;
}

bool is_slower(const SlowDown& change, double factor) {
  return change.ratio > factor && change.low > 1.0;
}

std::string slow_downs_text(const std::vector<SlowDown>& changes, double factor) {
  std::string text;
  for (const SlowDown& change : changes) {
    text += fmt::format("{:>6.2f}  ({:.2f} to {:.2f})  {}{}\n", change.ratio, change.low, change.high,
                        change.identity, is_slower(change, factor) ? "  SLOWER" : "");
  }
  return "Time relative to the earlier measurement (normalised by the ceilings where available):\n" + text;
}

void ProductUnit::measure(int times) {
  const auto multiply = [&] {
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, kSide, kSide, kSide, 1.0F, factor_.data(), kSide,
               factor_.data(), kSide, 0.0F, product_.data(), kSide);
  };
  if (factor_.empty()) {
    factor_.assign(kSide * kSide, 0.5F);
    product_.resize(kSide * kSide);
    multiply();
  }
  for (int time = 0; time < times; ++time) {
    const auto start = std::chrono::steady_clock::now();
    multiply();
    seconds_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

double ProductUnit::seconds() const {
  return seconds_.empty() ? std::nan("") : spread_of(seconds_).median;
}

}  // namespace olrank
