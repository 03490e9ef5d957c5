#include "bench/long_trial.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench/measurement.h"
#include "core/runtime/host.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCurveFile = "curve.jsonl";

double figure_named(const CurvePoint& point, std::string_view name) {
  const auto found = std::find_if(point.figures.begin(), point.figures.end(),
                                  [&](const RankerFigure& figure) { return figure.name == name; });
  return found == point.figures.end() ? std::nan("") : found->value;
}

/// Of the files below the folder, but the curve.
std::int64_t checkpoint_bytes_in(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != kCurveFile)
      bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

Fingerprint state_of(const Trial& trial) {
  StateWriter state;
  trial.save(state);
  return state.fingerprint();
}

}  // namespace

LongTrial::LongTrial(const ExperimentPlan& plan, const ExperimentRanker& ranker)
    : plan_(plan),
      ranker_plan_(ranker),
      identity_{ranker.name, plan.users.front().name, plan.folds.front(), plan.seeds.front()},
      recipe_{{"protocol", plan.protocol}, {"ranker", ranker.settings}},
      fold_(plan.data->get(identity_.fold)),
      execution_(plan.threads),
      folder_(std::make_unique<JobFolder>(scratch_.path() / identity_.path())),
      job_(plan, ranker, plan.users.front(), identity_, *fold_, 0, execution_) {
  folder_->begin();
  job_.trial.begin_evaluation();
  job_.finish_evaluation(*folder_);
  stages_ = job_.trial.clock().stages();
  folder_->write_checkpoint(job_, recipe_);
  folder_->finish_checkpoint();
}

void LongTrial::play(std::int64_t rounds) {
  const double start = processor_seconds();
  for (std::int64_t round = 0; round < rounds; ++round) job_.trial.play_round();
  seconds_ += processor_seconds() - start;
}

LongSpan LongTrial::measured(const ProductUnit& unit) {
  Trial& trial = job_.trial;
  LongSpan span;
  span.round = trial.rounds_played();
  span.rounds = span.round - last_round_;
  const auto rounds = static_cast<double>(span.rounds);
  all_seconds_ += seconds_;
  span.seconds = seconds_ / rounds;
  span.mean_seconds = all_seconds_ / static_cast<double>(span.round);
  span.unit_seconds = unit.processor_seconds();
  for (const StageClock::Stage& stage : trial.clock().stages()) {
    const auto before = std::find_if(stages_.begin(), stages_.end(), [&](const StageClock::Stage& other) {
      return other.name == stage.name;
    });
    const double earlier = before == stages_.end() ? 0.0 : before->seconds;
    if (stage.seconds > earlier) span.stages.emplace_back(stage.name, (stage.seconds - earlier) / rounds);
  }
  trial.begin_evaluation();
  const CurvePoint& point = job_.finish_evaluation(*folder_);
  span.pairs = point.pairs;
  span.offline_ndcg = point.offline_ndcg;
  span.posterior_bytes = figure_named(point, "posterior_bytes");
  span.drift = point.drift.value_or(std::nan(""));
  last_round_ = span.round;
  seconds_ = 0.0;
  stages_ = trial.clock().stages();
  return span;
}

LongSpan LongTrial::end_span(const ProductUnit& unit) {
  LongSpan span = measured(unit);
  folder_->write_checkpoint(job_, recipe_);
  folder_->finish_checkpoint();
  span.checkpoint_bytes = checkpoint_bytes_in(folder_->path());
  span.resident_bytes = resident_bytes();
  return span;
}

LongSpan LongTrial::end(const ProductUnit& unit, bool& same_bits) {
  LongSpan span = measured(unit);
  span.resident_bytes = resident_bytes();
  same_bits = resumed_alike();
  folder_->write_checkpoint(job_, recipe_);
  folder_->finish_checkpoint();
  span.checkpoint_bytes = checkpoint_bytes_in(folder_->path());
  return span;
}

bool LongTrial::resumed_alike() const {
  TrialJob again(plan_, ranker_plan_, plan_.users.front(), identity_, *fold_, 0, execution_);
  folder_->load(again, recipe_);
  while (!again.trial.finished()) again.trial.play_round();
  if (again.trial.evaluation_due()) again.trial.evaluate();
  return state_of(again.trial) == state_of(job_.trial);
}

}  // namespace olrank
