#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"
#include "core/statistics/slate_estimates.h"
#include "logs/direct_method.h"
#include "logs/list_features.h"

namespace olrank {

/// A request chooses these by name.
struct OffPolicyNames {
  std::string policy = "greedy";
  std::string reward = "clicks";
  std::vector<std::string> estimators;
  std::string click_model = "pbm";
};

/// The off-policy values of other rankers, from a log of lists that were shown with known probabilities.
struct OffPolicyRequest {
  std::string
      log;  // a service's feedback.jsonl or its state folder, or a trace of a trial; plain, .gz, .zst
  std::vector<std::string> models;  // files or folders of trials
  NamedInputs of_log{};             // what became of the features that earlier lists had
  bool trust_code = false;
  ListPolicy policy;
  ClickReward reward = ClickReward::kClicks;
  SlateEstimates::Settings estimates;
  /// Empty: all that the log has what they need for.
  std::vector<SlateEstimator> estimators;
  FittedModel click_model = FittedModel::kPosition;  // of the estimators that go by one

  /// Throws InvalidArgument with the flag and the names that there are.
  void choose(const OffPolicyNames& names);
  /// Throws InvalidArgument, with the flag, for values that no request has.
  void check() const;
  bool wants(SlateEstimator estimator) const;
  bool wants_model() const;  // whether an estimator goes by a click model
};

struct OffPolicyResult {
  struct Policy {
    std::string name;  // of the model
    std::vector<SlateEstimate> estimates;
    std::vector<SlateSupport> support;  // of prefixes
    SlateSupport whole;                 // of whole lists
    double lower_bound = 0.0;           // with clipped weights
    double unseen = 0.0;  // with a click model: share of what users would see that was never shown
  };
  /// With fewer effective lists, the largest weights decide, and intervals say more than the log does.
  static constexpr std::int64_t kFewestEffectiveLists = 100;

  std::int64_t lists = 0;               // used
  std::int64_t longest = 0;             // ranks of the longest of them
  std::int64_t without_propensity = 0;  // of the learner
  std::int64_t beyond_weight = 0;       // left out: their probabilities are too small for any weight
  std::int64_t of_other_arms = 0;       // left out, too: they were not the learner's
  bool own_lists = false;       // in place of the learner's, those that the incumbent's arm has shown count
  std::int64_t of_learner = 0;  // lists left out for them
  Interval learner;             // their reward, as they were shown
  std::int64_t without_candidates =
      0;  // lists whose log has the shown documents alone; used, as if these were all
  std::int64_t without_order = 0;  // of the incumbent, or of the candidate
  bool by_model_alone = false;     // no list has weights, and those of all arms are used
  Interval shown;
  std::vector<Policy> policies;
};

/// `data` is what the log's documents refer to; null for a log with their inputs. Throws DataError with the
/// line for a log that cannot be read, InvalidArgument where nothing in it can be used, and says why.
OffPolicyResult evaluate_off_policy(const OffPolicyRequest& request, const Dataset* data,
                                    ExecutionContext& context);

/// Says which lists have no weights, and why; empty if all have some.
std::string unweighed_sentences(const OffPolicyResult& result);
/// One HTML page: the estimates side by side, and what they rest on.
std::string off_policy_page(const OffPolicyRequest& request, const OffPolicyResult& result);
nlohmann::ordered_json off_policy_json(const OffPolicyRequest& request, const OffPolicyResult& result);
std::string off_policy_text(const OffPolicyRequest& request, const OffPolicyResult& result,
                            std::int64_t columns);

}  // namespace olrank
