#include "apps/bench/round_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/text/nearest.h"
#include "jobs/covariance/study_rankers.h"
#include "jobs/device_choice.h"

namespace olrank {
namespace {

template <class Enum>
Enum named(const std::string& flag, const std::string& name) {
  if (const auto value = value_named<Enum>(name)) return *value;
  std::vector<std::string> known;
  known.reserve(EnumNames<Enum>::values.size());
  for (const auto& [value, text] : EnumNames<Enum>::values) known.emplace_back(text);
  throw InvalidArgument(flag + " " + must_be_one_of(name, known));
}

}  // namespace

void RoundFlags::declare(CLI::App& app) {
  app.add_option("--structure", sizes_.structure,
                 "a covariance, inducing-N with N as the budget, or ensemble-N [default: full]");
  app.add_option("--module", sizes_.module,
                 "a LibTorch module in the place of the network, as in the setting of a ranker");
  app.add_option("--pairs", pairs_,
                 "n, observed pairs; several values, one after the other [default: 1000]")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--docs", sizes_.docs, "V, documents per query [default: 120]")
      ->check(CLI::PositiveNumber);
  app.add_option("--width", sizes_.width, "m, network width [default: 100]")->check(CLI::PositiveNumber);
  app.add_option("--depth", sizes_.depth, "L, layers of weights [default: 2]")->check(CLI::Range(2, 16));
  app.add_option("--features", sizes_.features, "d, features [default: 136]")->check(CLI::PositiveNumber);
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
  sizes.training.retrain = named<Retrain>("--retrain", retrain_);
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

}  // namespace olrank
