#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/fingerprint.h"
#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "jobs/experiment.h"
#include "jobs/job_folder.h"
#include "sim/curve.h"
#include "sim/trial.h"
#include "sim/trial_settings.h"

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

/// A training that goes on pass by pass, each with a line of the curve.
class PassJob : public Job {
 public:
  virtual bool finished() const = 0;
  /// The line before the first pass; none where nothing is known then.
  virtual std::optional<nlohmann::ordered_json> first_point();
  /// Makes a pass and returns its line.
  virtual nlohmann::ordered_json advance() = 0;

  std::uint64_t curve_bytes() const override { return curve_bytes_; }
  void save(StateWriter& state) const override { save_fields(*this, state); }
  void load(StateReader& state) override { load_fields(*this, state); }
  void fields(StateFields& state);

  /// Adds the point to the folder's curve, with the seconds of the folder's clock as its "seconds".
  void append(nlohmann::ordered_json point, JobFolder& folder);
  /// The curve without its seconds, for the fingerprint of the result.
  const std::string& untimed_curve() const { return untimed_curve_; }

 protected:
  virtual void training_fields(StateFields& state) = 0;

 private:
  std::string untimed_curve_;
  std::uint64_t curve_bytes_ = 0;
};

/// Plays the passes that are left, from the folder's checkpoint if there is one and `resume`, and `told`
/// hears of each. Writes a checkpoint at most once a second, and when a signal stops it. Returns whether
/// the job has finished; its result is then still to be written.
bool play_passes(
    PassJob& job, JobFolder& folder, const Recipe& recipe, bool resume,
    const std::function<void(const nlohmann::ordered_json& point, double seconds, bool last)>& told);

}  // namespace olrank
