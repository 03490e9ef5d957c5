#pragma once

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/settings/schema.h"
#include "core/settings/setting_sources.h"
#include "core/text/text_table.h"
#include "jobs/recommending/recommender_file.h"
#include "jobs/trial_job.h"
#include "recommend/ranking_figures.h"
#include "recommend/recommender.h"

namespace olrank {

/// Most reviews of a new user that cold-start figures know.
inline constexpr std::int64_t kMostKnownReviews = 5;

/// {"ndcg@10": …, "hit@10": …, "half_width": {…}, "users": …}: means over users with 95 % intervals.
nlohmann::ordered_json figures_json(const RankingFigures& figures);

/// Figures of a model on a part of the reviews; with a split by users, one for each number of known
/// reviews from 0 to kMostKnownReviews.
struct JudgedPart {
  std::vector<RankingFigures> figures;

  const RankingFigures& last() const { return figures.back(); }
  nlohmann::ordered_json json() const;
};
JudgedPart judge_test_part(ExecutionContext& context, const Recommender& model, const ReviewParts& parts,
                           const RecommendSettings& settings);

/// Training reviews that a user of few has at most.
inline constexpr std::int64_t kFewReviews = 5;

/// One training with its validation, which keeps the model of the best pass.
class RecommenderRun : public PassJob {
 public:
  RecommenderRun(const RecommendSettings& settings, const ReviewParts& parts, ExecutionContext& context);

  std::int64_t steps() const override { return training_->passed(); }
  bool finished() const override;
  /// The "seconds" of the line are those of the pass.
  nlohmann::ordered_json advance() override;

  const RecommenderTraining& training() const { return *training_; }
  std::int64_t entries() const { return entries_; }
  std::int64_t pairs() const { return pairs_; }
  double training_seconds() const { return training_seconds_; }

  /// Returns what summary.json says of a finished training, with its figures on the test part.
  nlohmann::ordered_json summary() const;
  void finish(JobFolder& folder, const Recipe& recipe) const;

 protected:
  void training_fields(StateFields& state) override;

 private:
  RecommendSettings given_;     // as the model file says them
  RecommendSettings settings_;  // with what the kind decides
  const ReviewParts& parts_;
  ExecutionContext& context_;
  std::unique_ptr<RecommenderTraining> training_;
  std::string kept_model_;
  std::int64_t kept_pass_ = 0;
  std::optional<double> best_;
  std::int64_t validations_since_best_ = 0;
  std::int64_t entries_ = 0;
  std::int64_t pairs_ = 0;
  double training_seconds_ = 0.0;
};

/// Everything that decides a training's result.
Recipe recommender_recipe(const RecommendSettings& settings, const ReviewParts& parts);

/// Throws InvalidArgument, before anything is allocated, if a training needs more than `allowed` bytes;
/// returns the sentence on what it needs.
std::string plan_recommender_memory(const RecommendSettings& settings, const ReviewParts& parts,
                                    int threads, std::int64_t allowed);

/// The table [recommend] with its defaults.
std::span<const SchemaWithDefaults> recommend_tables();

/// The kind's defaults, then the file, then the overrides. Throws InvalidArgument with the location of the
/// first mistake, of which a setting that the kind does not read is one.
RecommendSettings resolve_recommend_settings(const std::optional<std::filesystem::path>& file,
                                             std::span<const SettingOverride> overrides);
/// Resolves the settings of a document; tables called `other` are left to the caller.
RecommendSettings resolve_recommend_settings(const TomlDocument& document,
                                             std::span<const SettingOverride> overrides,
                                             std::string_view other = {});

/// Writes them as TOML that reads back to the same settings; without those that the kind does not read.
std::string print_recommend_settings(const RecommendSettings& settings);

/// Each recommender after the first against the first, over the same users: by figure `difference`, `p` of
/// Student's paired test, and `p_holm` after Holm's correction over all figures of all these recommenders.
std::vector<nlohmann::ordered_json> compared_with_first(std::span<const RankingFigures> judged);

struct RecommenderStudyRequest {
  std::string file;
  std::string out;
  int threads = available_threads();
  bool choose = false;   // whatever the file says
  bool dry_run = false;  // only says what it would train
};

bool is_recommend_study(const std::filesystem::path& file);
/// Trains what the folder lacks, then writes and prints the table. Returns the exit code.
int run_recommender_study(const RecommenderStudyRequest& request, const std::string& command,
                          const OutputForm& form, const TextSink& print);

}  // namespace olrank
