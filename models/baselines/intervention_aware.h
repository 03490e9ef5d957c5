#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/feedback/examination.h"
#include "models/baselines/deployed_policy.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A log of all deployed policies says this of a query's documents.
struct ObservedQuery {
  std::vector<std::int64_t> docs;  // their names
  std::vector<float> features;     // [docs × d]
  std::vector<double> clicks;      // of each document
  std::vector<double> places;  // [docs × ranks] lists that the policies were expected to show it in there
  std::int64_t lists = 0;
};

/// The intervention-aware estimate of each document's relevance (Oosterhuis and de Rijke, "Unifying online
/// and counterfactual learning to rank", WSDM 2021), above the `usual` one: clicks − usual · E, over E, the
/// examinations that all policies of the log together were expected to bring, Σ_k examination[k] · places.
/// A click at rank k has the probability examination[k] · relevance, so that the estimate has no bias where
/// E is at least the share `least` of the lists. Below, that share takes the place of E in the denominator,
/// and the estimate is nearer to the usual.
void estimate_relevance(const ObservedQuery& query, std::span<const double> examination, double usual,
                        double least, std::span<double> relevance);

/// A ranker that learns from the whole log of its policies by that estimate. Each round takes a step along
/// the gradient of the expected DCG of Plackett-Luce lists, with the estimates as gains, on queries drawn
/// from the log. Users examine ranks with the probabilities of `debias`; without it, with those that the
/// log tells (Examination, in which a document attracts by its own clicks and those of all).
/// Every list counts as drawn from the policy that is deployed when it is learned from, which is not so of
/// replayed and imported lists, those of a service's other arms, and feedback that comes after a refresh.
/// Deviations: the paper trains again from the start at a few times, and corrects for trust bias, which it
/// takes as known; here steps go on, and clicks have no other cause than relevance. The paper's estimates
/// are not above the usual one, which makes no difference where none is clipped.
class InterventionAware : public DeployedPolicyRanker {
 public:
  InterventionAware(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                    std::vector<float> first_theta, std::int64_t ranks);

  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void fields(StateFields& state) override;
  /// Saves everything but the log.
  void save_for_lists(StateWriter& state) const override {
    StateFields fields(state);
    const_cast<InterventionAware*>(this)->DeployedPolicyRanker::fields(fields);
  }
  void load_for_lists(StateReader& state) override {
    StateFields fields(state);
    DeployedPolicyRanker::fields(fields);
  }

 private:
  /// The number of a query's entry, with rows_ for its documents. New ones are added.
  std::int32_t find(const QueryDocs& query);
  /// The probability that users examine each rank, and the clicks of all documents for each examination.
  void find_examination();
  /// Learns how users read lists.
  void read(const ObservedQuery& known, std::span<const std::int32_t> shown,
            std::span<const std::uint8_t> clicks);
  /// Adds a list to the log, with the places that its policy could have given to each document.
  void count(ExecutionContext& context, const Feedback& feedback);
  void step_on_log(ExecutionContext& context, std::uint32_t round);

  std::int64_t ranks_;
  std::vector<double> debias_;
  PhiloxKey place_key_;
  PhiloxKey replay_key_;
  std::vector<double> worth_;  // by rank

  // State.
  std::vector<std::int64_t> names_;  // of the queries; −1 where they have none
  std::vector<ObservedQuery> queries_;
  std::vector<std::int32_t> log_;  // the query of each round
  Examination reading_of_users_;
  std::vector<double> examined_;  // by rank: expected examinations, unless they are given
  std::vector<double> lists_;     // by rank: lists that had it
  double clicks_ = 0.0;

  std::map<std::int64_t, std::int32_t> row_of_;  // of a named query
  std::vector<std::int32_t> rows_;               // in its entry, of the documents at hand
  std::vector<double> examination_;
  double usual_ = 0.0;
  Examination::Reading reading_;
  std::vector<double> relevance_;
  std::vector<double> attraction_;
  std::vector<double> places_;
};

std::unique_ptr<OnlineRanker> make_intervention_aware(const RankerRequest& request);
void set_intervention_aware_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
