#include "jobs/calibration.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/runtime/stopwatch.h"

namespace olrank {
namespace {

/// The first rounds allocate what later ones reuse.
constexpr std::int64_t kWarmUp = 2;

}  // namespace

Calibration calibrate(Trial& trial, const TrialSettings& settings, std::int64_t queries, double seconds,
                      std::int64_t most_rounds) {
  Calibration calibration;
  StageSeconds stages;
  double evaluating = 0.0;
  std::int64_t evaluations = 0;
  std::map<std::string, double> before;
  const Stopwatch start;
  while (!trial.finished() && calibration.rounds < most_rounds && calibration.seconds < seconds) {
    if (trial.evaluation_due()) {
      const Stopwatch begun;
      trial.evaluate();
      evaluating += begun.seconds();
      ++evaluations;
      for (const StageClock::Stage& stage : trial.clock().stages()) before[stage.name] = stage.seconds;
    }
    const Stopwatch begun;
    trial.play_round();
    const double whole = begun.seconds();
    ++calibration.rounds;
    double in_stages = 0.0;
    for (const StageClock::Stage& stage : trial.clock().stages()) {
      const double spent = stage.seconds - std::exchange(before[stage.name], stage.seconds);
      in_stages += spent;
      if (calibration.rounds > kWarmUp)
        stages[stage.name].push_back({static_cast<double>(calibration.rounds), spent});
    }
    if (calibration.rounds > kWarmUp)
      stages["other"].push_back(
          {static_cast<double>(calibration.rounds), std::max(0.0, whole - in_stages)});
    calibration.seconds = start.seconds();
  }
  const double covered = static_cast<double>(calibration.rounds) /
                         static_cast<double>(std::max<std::int64_t>(1, settings.rounds));
  calibration.shape = shape_of_stages(stages, queries, covered);
  if (calibration.rounds > 0 && calibration.rounds <= kWarmUp) {
    const double each = (calibration.seconds - evaluating) / static_cast<double>(calibration.rounds);
    calibration.shape += CostShape(std::vector<RoundSeconds>{{1.0, each}}, queries, covered);
  }
  if (evaluations > 0) {
    const double each = evaluating / static_cast<double>(evaluations * settings.eval_every);
    calibration.shape += CostShape(std::vector<RoundSeconds>{{1.0, each}}, queries, covered);
  }
  return calibration;
}

}  // namespace olrank
