#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/online/labelled_queries.h"
#include "core/online/trial_keys.h"
#include "jobs/experiment.h"
#include "jobs/job.h"
#include "jobs/job_folder.h"
#include "sim/curve_state.h"
#include "sim/trial.h"
#include "sim/uniform_queries.h"

namespace olrank {

/// A trial of a plan with everything that it uses, as a job of rounds. Plan, fold and execution have to
/// outlive it.
class TrialJob : public Job {
 public:
  TrialJob(const ExperimentPlan& plan, const ExperimentRanker& of_ranker, const ExperimentUser& of_user,
           const TrialIdentity& identity, const FoldData& fold, std::int64_t slot,
           ExecutionContext& execution);

  static TrialSettings settings(const ExperimentPlan& plan, const FoldData& fold);

  std::int64_t steps() const override { return trial.rounds_played(); }
  std::uint64_t curve_bytes() const override { return curve_.bytes; }
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

  /// Ends the evaluation that has begun and adds its line to the folder's curve.
  const CurvePoint& finish_evaluation(JobFolder& folder);
  /// Writes model, metrics by query and summary. `notes` are what a reader of the results should know, a
  /// sentence each.
  void finish(JobFolder& folder, const Recipe& recipe, const std::vector<std::string>& notes);

  const ExperimentRanker& ranker_plan;
  const ExperimentUser& user_plan;
  TrialKeys keys;
  LabelledQueries labels;
  std::unique_ptr<OnlineRanker> ranker;
  std::optional<TrialFairness> fairness;
  UniformQueries queries;
  std::unique_ptr<ClickModel> clicks;
  Trial trial;

 private:
  TrialIdentity identity_;
  const FoldData& fold_;
  CurveState curve_;
  CurveState before_last_;  // of the curve without its last line, which a longer trial may not have
};

/// Loads the ranker's part of a trial's latest checkpoint into a ranker with the trial's settings. Returns
/// the rounds that the trial has played. Throws IoError for a checkpoint of another kind of ranker.
std::int64_t load_ranker(const std::filesystem::path& folder, OnlineRanker& ranker);

}  // namespace olrank
