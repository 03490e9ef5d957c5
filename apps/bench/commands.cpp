#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "apps/bench/measurement_flags.h"
#include "apps/command.h"
#include "bench/cases/case_list.h"
#include "bench/cases/data_cases.h"
#include "bench/measurement_file.h"
#include "core/io/folder.h"
#include "core/ops/relu_network.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/device_choice.h"

namespace olrank {
namespace {

const std::vector<std::string> kAxes = {"n", "V", "m", "d", "p", "N", "threads", "trials"};

/// The even width whose network has the closest number of parameters.
std::int64_t width_for(const RoundSizes& sizes, std::int64_t parameters) {
  const auto away = [&](std::int64_t width) {
    return std::abs(ntk_shape(sizes.features, width, sizes.depth).parameters() - parameters);
  };
  std::int64_t width = 2;
  while (away(width + 2) < away(width)) width += 2;
  return width;
}

RoundSizes with(RoundSizes sizes, const std::string& axis, std::int64_t value) {
  if (axis == "n") sizes.pairs = value;
  if (axis == "V") sizes.docs = value;
  if (axis == "m") sizes.width = value;
  if (axis == "d") sizes.features = value;
  if (axis == "p") sizes.width = width_for(sizes, value);
  if (axis == "N") sizes.structure = fmt::format("ensemble-{}", value);
  if (axis == "threads") sizes.threads = static_cast<int>(value);
  if (axis == "trials") sizes.trials = value;
  return sizes;
}

using Points = std::vector<std::pair<double, double>>;

/// The points from half of the largest size on; sizes ascend.
Points last_half(const Points& points) {
  Points half;
  for (const auto& point : points) {
    if (point.first >= 0.5 * points.back().first) half.push_back(point);
  }
  return half;
}

/// The slope of log seconds over log size, by least squares; NaN with fewer than two points.
double fitted_exponent(const Points& points) {
  if (points.size() < 2) return std::nan("");
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

/// The size on the axis; for p, the actual number of parameters.
double size_on(const std::string& axis, std::int64_t value, const Measurement& measurement) {
  for (const auto& [name, size] : measurement.parameters) {
    if (name == axis) return static_cast<double>(size);
  }
  return static_cast<double>(value);
}

/// "round/full/train" is "train".
std::string stage_of(const Measurement& measurement) {
  return measurement.name.substr(measurement.name.rfind('/') + 1);
}

class BenchRoundCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--over", axis_,
                   "vary one size, n, V, m, d, p, N, threads or trials, and fit exponents [default: none]");
    app.add_option("--values", values_, "with --over: two or more values of that size")->delimiter(',');
    round_.declare(app);
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    if (axis_.empty() && !values_.empty())
      throw InvalidArgument("--values are those of a size: name it with --over.");
    if (!axis_.empty()) check();
    flags_.check();
    const std::vector<RoundSizes> all = axis_.empty() ? round_.all_sizes() : varied_sizes();
    for (const RoundSizes& sizes : all) check_memory(sizes);
    const std::string varied =
        axis_.empty() ? "" : fmt::format(" --over {} --values {}", axis_, fmt::join(values_, ","));
    MeasurementFile file{"olrank bench round" + varied + round_.command_line(), this_machine(), {}, {}};
    ProductUnit unit;
    std::map<std::string, Points> by_stage;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!axis_.empty()) log_info("{} = {}", axis_, values_[i]);
      for (Measurement& one : measure_round(all[i], unit)) {
        if (!axis_.empty() && one.seconds.median > 0.0)
          by_stage[stage_of(one)].emplace_back(size_on(axis_, values_[i], one), one.seconds.median);
        file.measurements.push_back(std::move(one));
      }
    }
    file.unit_seconds = unit.seconds();
    for (const auto& [stage, points] : by_stage) {
      if (points.size() == values_.size())
        file.exponents.push_back(
            {stage, axis_, fitted_exponent(points), fitted_exponent(last_half(points))});
    }
    const int code = flags_.report(file, output);
    for (const FittedExponent& fitted : file.exponents) {
      const std::string of_half =
          std::isfinite(fitted.last_half)
              ? fmt::format(", and ~ {}^{:.2f} over the last half", fitted.axis, fitted.last_half)
              : "";
      log_info("{}: time ~ {}^{:.2f}{}", fitted.stage, fitted.axis, fitted.exponent, of_half);
    }
    return code;
  }

 private:
  std::vector<RoundSizes> varied_sizes() const {
    std::vector<RoundSizes> all;
    for (const std::int64_t value : values_) all.push_back(with(round_.sizes(), axis_, value));
    return all;
  }

  void check() const {
    bool known = false;
    for (const std::string& axis : kAxes) known = known || axis == axis_;
    if (!known) {
      throw InvalidArgument("--over " + must_be_one_of(axis_, kAxes));
    }
    if (values_.size() < 2)
      throw InvalidArgument("--values requires at least two values to fit an exponent.");
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (values_[i] < 1 || (i > 0 && values_[i] <= values_[i - 1]))
        throw InvalidArgument("--values must be positive and ascending.");
    }
    if (axis_ == "p") check_widths();
  }

  void check_widths() const {
    for (std::size_t i = 1; i < values_.size(); ++i) {
      const std::int64_t width = width_for(round_.sizes(), values_[i]);
      if (width == width_for(round_.sizes(), values_[i - 1])) {
        throw_error<InvalidArgument>(
            "--values: With {2} as the width, a network of {3} features and {4} layers is the closest to "
            "both {0} and {1} parameters; choose values further apart.",
            values_[i - 1], values_[i], width, round_.sizes().features, round_.sizes().depth);
      }
    }
  }

  std::string axis_;
  std::vector<std::int64_t> values_;
  RoundFlags round_;
  MeasurementFlags flags_;
};

std::vector<Measurement> measured(const std::vector<BenchCase>& cases) {
  std::vector<Measurement> measurements;
  for (const BenchCase& work : cases) {
    log_info("{}", work.name);
    measurements.push_back(measure(work));
  }
  return measurements;
}

class BenchDataCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--source", source_, "SOURCE",
               "synthetic data set, or a plain LETOR text file [default: synth:mslr-like?queries=100]");
    app.add_option("--threads", threads_, "CPU threads [default: 1]")->check(CLI::PositiveNumber);
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    flags_.check();
    const ScratchFolder folder;
    return flags_.report({fmt::format("olrank bench data --source '{}' --threads {}", source_, threads_),
                          this_machine(),
                          measured(data_cases(source_, threads_, folder.path())),
                          {}},
                         output);
  }

 private:
  std::string source_ = "synth:mslr-like?queries=100";
  int threads_ = 1;
  MeasurementFlags flags_;
};

class BenchOpsCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--only", only_, "TEXT", "measure only operations whose name contains TEXT");
    app.add_option("--pairs", sizes_.pairs, "n, observed pairs [default: 5000]")
        ->check(CLI::PositiveNumber);
    declare_sizes(app, sizes_);
    app.add_option(
        "--device", device_,
        "auto, cpu, cuda or cuda:N; on a GPU, device_bench runs with its own sizes [default: auto]");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    flags_.check();
    if (const auto gpu = gpu_for(device_)) return flags_.report(measure_on_gpu(gpu->index, only_), output);
    std::vector<BenchCase> chosen = op_cases(sizes_);
    std::erase_if(chosen,
                  [&](const BenchCase& work) { return work.name.find(only_) == std::string::npos; });
    if (chosen.empty())
      throw_error<InvalidArgument>("--only {}: No operation's name contains this text.", only_);
    for (const BenchCase& work : chosen) check_memory(work);
    return flags_.report(
        {fmt::format("olrank bench ops --pairs {} --docs {} --width {} --depth {} --features {}",
                     sizes_.pairs, sizes_.docs, sizes_.width, sizes_.depth, sizes_.features),
         this_machine(),
         measured(chosen),
         {}},
        output);
  }

 private:
  std::string only_;
  std::string device_ = "auto";
  OpSizes sizes_;
  MeasurementFlags flags_;
};

}  // namespace

const CommandEntry kBenchRoundCommand{
    "bench round",
    "benchmark the stages of a round in the middle of a trial, and with --over how they scale",
    make_command<BenchRoundCommand>};
const CommandEntry kBenchDataCommand{
    "bench data", "benchmark parsing, inspecting, binary copies, metrics and ranking a file",
    make_command<BenchDataCommand>};
const CommandEntry kBenchOpsCommand{"bench ops",
                                    "benchmark each operation against its ceiling on this machine",
                                    make_command<BenchOpsCommand>};

}  // namespace olrank
