#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "core/statistics/slate_estimates.h"

namespace olrank {

/// What a click at a rank is worth: one, its discount 1/log₂(rank + 1), one for the first of a list, or
/// what its events are (a record's rewards).
enum class ClickReward { kClicks, kDcg, kFirstClick, kWeight };

template <>
struct EnumNames<ClickReward> {
  static constexpr std::array values = {
      std::pair{ClickReward::kClicks, std::string_view("clicks")},
      std::pair{ClickReward::kDcg, std::string_view("dcg")},
      std::pair{ClickReward::kFirstClick, std::string_view("first-click")},
      std::pair{ClickReward::kWeight, std::string_view("weight")}};
};

/// How lists follow from the scores of a model: by score, drawn in proportion to e^score, or by score with
/// a random document at some ranks; or the order that requests brought.
struct ListPolicy {
  enum class Kind { kGreedy, kPlackettLuce, kEpsilon, kIncumbent };
  Kind kind = Kind::kGreedy;
  double epsilon = 0.0;

  /// "greedy", "plackett-luce", "epsilon=0.1" or "incumbent". Throws InvalidArgument with the names.
  static ListPolicy parse(const std::string& text);
  std::string name() const;
  /// P(document at each rank | those above) of a list, by scores of all candidates.
  void probabilities(std::span<const double> scores, std::span<const std::int32_t> list,
                     std::span<double> probabilities) const;
};

/// The off-policy values of other rankers, from a log of lists that were shown with known probabilities.
struct OffPolicyRequest {
  std::string
      log;  // a service's feedback.jsonl or its state folder, or a trace of a trial; plain, .gz, .zst
  std::vector<std::string> models;  // files or folders of trials
  bool trust_code = false;
  ListPolicy policy;
  ClickReward reward = ClickReward::kClicks;
  SlateEstimates::Settings estimates;
};

struct OffPolicyResult {
  struct Policy {
    std::string name;  // of the model
    std::vector<SlateEstimate> estimates;
    std::vector<SlateSupport> support;  // of prefixes
    SlateSupport whole;                 // of whole lists
    double lower_bound = 0.0;           // with clipped weights
  };
  std::int64_t lists = 0;  // used
  std::int64_t without_propensity = 0;
  std::int64_t of_other_arms = 0;  // left out, too: they were not the learner's
  std::int64_t without_candidates =
      0;  // lists whose log has the shown documents alone; used, as if these were all
  std::int64_t without_incumbent = 0;
  Interval shown;
  std::vector<Policy> policies;
};

/// `data` is what the log's documents refer to; null for a log with their inputs. Throws DataError with the
/// line for a log that cannot be read, InvalidArgument where nothing in it can be used, and says why.
OffPolicyResult evaluate_off_policy(const OffPolicyRequest& request, const Dataset* data,
                                    ExecutionContext& context);

nlohmann::ordered_json off_policy_json(const OffPolicyRequest& request, const OffPolicyResult& result);
std::string off_policy_text(const OffPolicyRequest& request, const OffPolicyResult& result,
                            std::int64_t columns);

}  // namespace olrank
