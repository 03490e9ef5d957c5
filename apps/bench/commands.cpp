#include "apps/bench/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "bench/cases/case_list.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/ops/relu_network.h"
#include "core/runtime/log.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/covariance/covariance_study.h"
#include "jobs/device_choice.h"

namespace olrank {
namespace {

const std::vector<std::string> kAxes = {"n", "V", "m", "d", "p", "N", "threads"};

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
  return sizes;
}

using Points = std::vector<std::pair<double, double>>;

/// The points from half of the largest size on; sizes ascend.
Points last_half(const Points& points) {
  return {std::find_if(points.begin(), points.end(),
                       [&](const auto& point) { return point.first >= 0.5 * points.back().first; }),
          points.end()};
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
                   "vary one size, n, V, m, d, p, N or threads, and fit exponents [default: none]");
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
    if (std::find(kAxes.begin(), kAxes.end(), axis_) == kAxes.end())
      throw InvalidArgument("--over " + must_be_one_of(axis_, kAxes));
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

void warn_if_other_machine(const Machine& before, const Machine& now) {
  if (before.processor == now.processor && before.cores == now.cores && before.blas == now.blas) return;
  log_warning(
      "The earlier measurements come from another machine ({}, {} cores, {}; this one: {}, {} cores, {}), "
      "so the ratios are not comparable.",
      before.processor, before.cores, before.blas, now.processor, now.cores, now.blas);
}

namespace fs = std::filesystem;

/// Runs a program with its output redirected to stderr; returns its exit code.
int run_program(const fs::path& program, int gpu, const std::string& only, const fs::path& json) {
  const pid_t child = ::fork();
  if (child < 0) throw IoError("start", program.string(), errno);
  if (child == 0) {
    ::setenv("CUDA_VISIBLE_DEVICES", std::to_string(gpu).c_str(), 0);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execl(program.c_str(), program.c_str(), "--only", only.c_str(), "--json", json.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

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

void MeasurementFlags::declare(CLI::App& app) {
  json_option_ = add_output(app, "--json", json_, "FILE",
                            "write the measurements to FILE as JSON; without FILE, print them")
                     ->expected(0, 1);
  add_option(app, "--compare", compare_, "FILE", "compare with measurements written by --json FILE");
  add_option(app, "--factor", factor_, "REAL",
             "with --compare: exit 1 if anything is slower by more than this factor [default: 1.5]");
}

void MeasurementFlags::check() const {
  if (!(factor_ >= 1.0)) throw InvalidArgument("--factor must be at least 1.");
  if (!compare_.empty()) read_measurements(compare_);
}

int MeasurementFlags::report(const MeasurementFile& file, const OutputFlags& output) const {
  const bool prints_json = output.json || (json_option_->count() > 0 && json_.empty());
  fmt::print("{}", prints_json ? measurements_json(file) : measurements_text(file, output.columns()));
  if (!json_.empty()) {
    write_file_atomically(json_, measurements_json(file));
    log_info("Wrote {}: the measurements as JSON", json_);
  }
  for (const Measurement& one : file.measurements) check_share(one);
  if (compare_.empty()) return 0;
  const MeasurementFile before = read_measurements(compare_);
  warn_if_other_machine(before.machine, file.machine);
  const std::vector<SlowDown> changes = slow_downs(before, file);
  if (changes.empty())
    throw_error<InvalidArgument>("{} has no measurement in common with this run.", compare_);
  if (!prints_json) fmt::print("\n{}", slow_downs_text(changes, factor_));
  const auto slower = std::count_if(changes.begin(), changes.end(),
                                    [&](const SlowDown& change) { return is_slower(change, factor_); });
  if (slower > 0)
    log_warning("{} of {} measurements are slower by more than a factor of {}.", slower, changes.size(),
                factor_);
  return slower > 0 ? 1 : 0;
}

void RoundFlags::declare(CLI::App& app) {
  app.add_option("--structure", sizes_.structure,
                 "a covariance, inducing-N with N as the budget, or ensemble-N [default: full]");
  app.add_option("--module", sizes_.module,
                 "a LibTorch module in the place of the network, as in the setting of a ranker");
  app.add_option("--pairs", pairs_,
                 "n, observed pairs; several values, one after the other [default: 1000]")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  declare_sizes(app, sizes_);
  app.add_option("--threads", sizes_.threads, "CPU threads [default: 1]")->check(CLI::PositiveNumber);
  app.add_option("--device", device_, "auto, cpu, cuda or cuda:N; auto means the CPU [default: auto]");
  app.add_option(
         "--rounds", sizes_.rounds,
         "rounds to measure [default: 11; with --retrain growth, those from one training on the whole "
         "history to the next]")
      ->check(CLI::PositiveNumber);
  app.add_option("--retrain", retrain_, "every-round or growth [default: every-round]");
  app.add_option("--retrain-growth", sizes_.training.growth,
                 "growth of the history between two trainings on all of it [default: 0.05]")
      ->check(CLI::Range(1e-6, 1.0));
  app.add_option("--replay-steps", sizes_.training.replay_steps, "steps in the rounds between [default: 4]")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--replay-pairs", sizes_.training.replay, "pairs drawn for these steps [default: 256]")
      ->check(CLI::PositiveNumber);
}

RoundSizes RoundFlags::sizes() const {
  const std::vector<RoundSizes> all = all_sizes();
  if (all.size() > 1) throw InvalidArgument("--pairs must have one value in this command.");
  return all.front();
}

std::vector<RoundSizes> RoundFlags::all_sizes() const {
  std::vector<RoundSizes> all;
  RoundSizes sizes = sizes_;
  sizes.training.retrain = parse_choice<Retrain>("--retrain", retrain_);
  if (const auto gpu = gpu_for(device_)) sizes.gpu = gpu->index;
  for (const std::int64_t pairs : pairs_) {
    sizes.pairs = pairs;
    all.push_back(sizes);
  }
  return all;
}

std::string RoundFlags::command_line() const {
  const RetrainingRule& training = sizes_.training;
  return fmt::format(
      " --structure {}{} --pairs {} --docs {} --width {} --depth {} --features {} --threads {}{}",
      sizes_.structure, sizes_.module.empty() ? "" : " --module " + sizes_.module, fmt::join(pairs_, ","),
      sizes_.docs, sizes_.width, sizes_.depth, sizes_.features, sizes_.threads,
      retrain_ == name_of(Retrain::kEveryRound)
          ? ""
          : fmt::format(" --retrain {} --retrain-growth {} --replay-steps {} --replay-pairs {}", retrain_,
                        training.growth, training.replay_steps, training.replay));
}

MeasurementFile measure_on_gpu(int gpu, const std::string& only) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "device_bench";
  if (!fs::exists(program)) {
    throw_error<InvalidArgument>(
        "GPU benchmarks require {}, which does not exist: build all targets of a CUDA build.",
        program.string());
  }
  const ScratchFolder scratch;
  const fs::path json = scratch.path() / "operations.json";
  const int code = run_program(program, gpu, only, json);
  if (code != 0) throw_error<Error>("{} exited with code {}.", program.string(), code);
  return read_measurements(json.string());
}

}  // namespace olrank
