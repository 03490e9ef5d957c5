#include "apps/bench/round_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/bench/study_rankers.h"
#include "apps/device_choice.h"
#include "core/error.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

MemberSchedule schedule_named(const std::string& name) {
  if (const auto schedule = value_named<MemberSchedule>(name)) return *schedule;
  std::vector<std::string> known;
  known.reserve(EnumNames<MemberSchedule>::values.size());
  for (const auto& [value, text] : EnumNames<MemberSchedule>::values) known.emplace_back(text);
  throw InvalidArgument("--member-schedule " + must_be_one_of(name, known));
}

}  // namespace

void RoundFlags::declare(CLI::App& app) {
  app.add_option("--structure", sizes_.structure,
                 "full, diagonal, diagonal-of-inverse, none or ensemble-N [default: full]");
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
  app.add_option("--member-schedule", schedules_,
                 "how a GPU trains the members of ensemble-N: auto, streams, batched, or several of them "
                 "[default: auto]")
      ->delimiter(',');
  app.add_option("--rounds", sizes_.rounds, "rounds to measure [default: 11]")->check(CLI::PositiveNumber);
}

RoundSizes RoundFlags::common_sizes() const {
  RoundSizes sizes = sizes_;
  if (const auto gpu = gpu_for(device_)) sizes.gpu = gpu->index;
  if (!schedules_.empty() && (!sizes.gpu || members_of(sizes.structure) == 0)) {
    throw InvalidArgument(
        "--member-schedule is for ensembles on a GPU: add --structure ensemble-10 and --device cuda.");
  }
  return sizes;
}

RoundSizes RoundFlags::sizes() const {
  const std::vector<RoundSizes> all = all_sizes();
  if (all.size() > 1)
    throw InvalidArgument("--pairs and --member-schedule must have one value each in this command.");
  return all.front();
}

std::vector<RoundSizes> RoundFlags::all_sizes() const {
  std::vector<RoundSizes> all;
  RoundSizes sizes = common_sizes();
  for (const std::int64_t pairs : pairs_) {
    sizes.pairs = pairs;
    if (schedules_.empty()) all.push_back(sizes);
    for (const std::string& schedule : schedules_) {
      sizes.schedule = schedule_named(schedule);
      all.push_back(sizes);
    }
  }
  return all;
}

std::string RoundFlags::command_line() const {
  return fmt::format(
      " --structure {} --pairs {} --docs {} --width {} --depth {} --features {} --threads {} --trials {}{}",
      sizes_.structure, fmt::join(pairs_, ","), sizes_.docs, sizes_.width, sizes_.depth, sizes_.features,
      sizes_.threads, sizes_.trials,
      schedules_.empty() ? "" : fmt::format(" --member-schedule {}", fmt::join(schedules_, ",")));
}

}  // namespace olrank
