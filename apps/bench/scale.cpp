#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "apps/bench/commands.h"
#include "apps/bench/measurement_flags.h"
#include "apps/bench/round_flags.h"
#include "core/error.h"
#include "core/runtime/log.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

const std::vector<std::string> kAxes = {"n", "V", "m", "d", "N", "threads"};

RoundSizes with(RoundSizes sizes, const std::string& axis, std::int64_t value) {
  if (axis == "n") sizes.pairs = value;
  if (axis == "V") sizes.docs = value;
  if (axis == "m") sizes.width = value;
  if (axis == "d") sizes.features = value;
  if (axis == "N") sizes.structure = fmt::format("ensemble-{}", value);
  if (axis == "threads") sizes.threads = static_cast<int>(value);
  return sizes;
}

/// The slope of log seconds over log size, by least squares.
double fitted_exponent(const std::vector<std::pair<double, double>>& points) {
  double x_mean = 0.0;
  double y_mean = 0.0;
  for (const auto& [x, y] : points) {
    x_mean += std::log(x) / static_cast<double>(points.size());
    y_mean += std::log(y) / static_cast<double>(points.size());
  }
  double xx = 0.0;
  double xy = 0.0;
  for (const auto& [x, y] : points) {
    xx += (std::log(x) - x_mean) * (std::log(x) - x_mean);
    xy += (std::log(x) - x_mean) * (std::log(y) - y_mean);
  }
  return xy / xx;
}

/// "round/full/train" is "train".
std::string stage_of(const Measurement& measurement) {
  return measurement.name.substr(measurement.name.rfind('/') + 1);
}

class BenchScaleCommand : public Command {
 public:
  std::string name() const override { return "scale"; }
  std::string summary() const override {
    return "how the stages of a round grow with one size, with fitted exponents";
  }
  void declare(CLI::App& app) override {
    app.add_option("--over", axis_, "what grows: n, V, m, d, N or threads [n]");
    app.add_option("--values", values_, "its values, two or more [250,500,1000,2000]")->delimiter(',');
    round_.declare(app);
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    check();
    std::vector<Measurement> all;
    std::map<std::string, std::vector<std::pair<double, double>>> by_stage;
    for (const std::int64_t value : values_) {
      log_info("{} = {}", axis_, value);
      for (Measurement& one : measure_round(with(round_.sizes(), axis_, value))) {
        if (one.seconds.median > 0.0)
          by_stage[stage_of(one)].emplace_back(static_cast<double>(value), one.seconds.median);
        all.push_back(std::move(one));
      }
    }
    const int code = flags_.tell(fmt::format("olrank bench scale --over {} --values {}{}", axis_,
                                             fmt::join(values_, ","), round_.spoken()),
                                 std::move(all), output);
    if (!output.json) {
      for (const auto& [stage, points] : by_stage) {
        if (points.size() == values_.size())
          log_info("{} grows like {}^{:.2f}", stage, axis_, fitted_exponent(points));
      }
    }
    return code;
  }

 private:
  void check() const {
    bool known = false;
    for (const std::string& axis : kAxes) known = known || axis == axis_;
    if (!known) {
      throw InvalidArgument(fmt::format("--over: '{}' must be one of {}; the nearest is '{}'.", axis_,
                                        joined(kAxes, " or "), nearest_name(axis_, kAxes)));
    }
    if (values_.size() < 2) throw InvalidArgument("--values needs two values or more to fit an exponent.");
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] < 1 || (i > 0 && values_[i] <= values_[i - 1]))
        throw InvalidArgument("--values must ascend from 1 or more.");
    }
  }

  std::string axis_ = "n";
  std::vector<std::int64_t> values_ = {250, 500, 1000, 2000};
  RoundFlags round_;
  MeasurementFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_bench_scale_command() {
  return std::make_unique<BenchScaleCommand>();
}

}  // namespace olrank
