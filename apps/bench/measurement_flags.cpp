#include "apps/bench/measurement_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/settings/choice.h"
#include "core/throw_error.h"
#include "jobs/covariance/study_rankers.h"
#include "jobs/device_choice.h"

namespace olrank {
namespace {

void warn_if_other_machine(const Machine& before, const Machine& now) {
  if (before.processor == now.processor && before.cores == now.cores && before.blas == now.blas) return;
  log_warning(
      "The earlier measurements come from another machine ({}, {} cores, {}; this one: {}, {} cores, {}), "
      "so the ratios are not comparable.",
      before.processor, before.cores, before.blas, now.processor, now.cores, now.blas);
}

}  // namespace

void MeasurementFlags::declare(CLI::App& app) {
  json_option_ = add_option(app, "--json", json_, "FILE",
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
  app.add_option("--threads", sizes_.threads, "CPU threads per trial [default: 1]")
      ->check(CLI::PositiveNumber);
  app.add_option("--trials", sizes_.trials, "trials to run in parallel [default: 1]")
      ->check(CLI::PositiveNumber);
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

RoundSizes RoundFlags::common_sizes() const {
  RoundSizes sizes = sizes_;
  sizes.training.retrain = parse_choice<Retrain>("--retrain", retrain_);
  if (const auto gpu = gpu_for(device_)) sizes.gpu = gpu->index;
  return sizes;
}

RoundSizes RoundFlags::sizes() const {
  const std::vector<RoundSizes> all = all_sizes();
  if (all.size() > 1) throw InvalidArgument("--pairs must have one value in this command.");
  return all.front();
}

std::vector<RoundSizes> RoundFlags::all_sizes() const {
  std::vector<RoundSizes> all;
  RoundSizes sizes = common_sizes();
  for (const std::int64_t pairs : pairs_) {
    sizes.pairs = pairs;
    all.push_back(sizes);
  }
  return all;
}

std::string RoundFlags::command_line() const {
  const RetrainingRule& training = sizes_.training;
  return fmt::format(
      " --structure {}{} --pairs {} --docs {} --width {} --depth {} --features {} --threads {} --trials "
      "{}{}",
      sizes_.structure, sizes_.module.empty() ? "" : " --module " + sizes_.module, fmt::join(pairs_, ","),
      sizes_.docs, sizes_.width, sizes_.depth, sizes_.features, sizes_.threads, sizes_.trials,
      retrain_ == name_of(Retrain::kEveryRound)
          ? ""
          : fmt::format(" --retrain {} --retrain-growth {} --replay-steps {} --replay-pairs {}", retrain_,
                        training.growth, training.replay_steps, training.replay));
}

namespace {

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
