#include "models/prpo.h"

#include <algorithm>
#include <utility>

#include "core/metrics/score_order.h"
#include "models/first_model.h"
#include "models/frozen_score_model.h"
#include "models/plackett_luce_gradient.h"

namespace olrank {
namespace {

/// Scores by the policy that learns, lists by the one that is safe.
class FrozenPrpo : public FrozenScoreModel {
 public:
  FrozenPrpo(std::shared_ptr<const ScoreModel> model, std::span<const float> theta,
             std::span<const float> safe, PhiloxKey list_key)
      : FrozenScoreModel(model, theta),
        model_(std::move(model)),
        safe_(safe.begin(), safe.end()),
        list_key_(list_key) {}

 private:
  void explore(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto narrow = scratch.take<float>(ranking.scores.size());
    model_->score(context, safe_, task.docs, narrow);
    const auto scores = scratch.take<double>(narrow.size());
    std::copy(narrow.begin(), narrow.end(), scores.begin());
    const auto keys = scratch.take<double>(narrow.size());
    plackett_luce_keys(scores, list_key_, task.round, keys);
    order_by_score(keys, ranking.list, scratch);
    plackett_luce_propensity(scores, ranking.list, ranking.propensity);
  }

  std::shared_ptr<const ScoreModel> model_;
  std::vector<float> safe_;
  PhiloxKey list_key_;
};

}  // namespace

PrpoRanker::PrpoRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                       std::vector<float> first_theta)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
      list_key_(keys.key(Purpose::kList)),
      clip_(settings.bandit.exposure_clip),
      refresh_rounds_(settings.bandit.refresh_rounds),
      safe_(theta().begin(), theta().end()) {}

RankedList PrpoRanker::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  scores_of(context, query, round);  // for describe() and learn()
  const auto measured = context.clock.measure("rank");
  Scratch& scratch = context.execution.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<double>(query.docs());
  score_with(context.execution, safe_, query, round, scores);
  const auto keys = scratch.take<double>(scores.size());
  plackett_luce_keys(scores, list_key_, round, keys);
  list_.resize(scores.size());
  order_by_score(keys, list_, scratch);
  plackett_luce_propensity(scores, list_, propensity_);
  return shown_list();
}

std::shared_ptr<const FrozenRanker> PrpoRanker::freeze() const {
  return std::make_shared<FrozenPrpo>(shared_model(), theta(), safe_, list_key_);
}

void PrpoRanker::find_advantages(const Feedback& feedback) {
  const std::size_t shown = feedback.shown.size();
  if (lists_.size() < shown) {
    lists_.resize(shown, 0);
    clicks_below_.resize(shown, 0.0);
  }
  advantages_.assign(shown, 0.0);
  double clicks = 0.0;
  for (std::size_t rank = shown; rank-- > 0;) {
    clicks += feedback.clicks[rank] != 0 ? 1.0 : 0.0;
    const double mean = lists_[rank] == 0 ? 0.0 : clicks_below_[rank] / static_cast<double>(lists_[rank]);
    advantages_[rank] = clicks - mean;
    clicks_below_[rank] += clicks;
    ++lists_[rank];
  }
}

LearnReport PrpoRanker::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  const auto scores = scores_of(context, feedback.query, feedback.round);
  {
    const auto measured = context.clock.measure("train");
    Scratch& scratch = context.execution.scratch();
    const Scratch::Frame frame(scratch);
    const auto safe_scores = scratch.take<double>(scores.size());
    score_with(context.execution, safe_, feedback.query, feedback.round, safe_scores);
    find_advantages(feedback);
    const auto weights = scratch.take<double>(scores.size());
    proximal_weights({scores, safe_scores, feedback.shown, advantages_, clip_}, scratch, weights);
    follow_gradient(context.execution, feedback.query, weights);
  }
  end_round();
  if (++since_refresh_ >= refresh_rounds_) {
    since_refresh_ = 0;
    safe_.assign(theta().begin(), theta().end());
  }
  return {};
}

void PrpoRanker::save(StateWriter& state) const {
  ScoreModelRanker::save(state);
  state.put("prpo.safe", safe_);
  state.put("prpo.since_refresh", since_refresh_);
  state.put("prpo.clicks_below", clicks_below_);
  state.put("prpo.lists", lists_);
}

void PrpoRanker::load(StateReader& state) {
  ScoreModelRanker::load(state);
  state.get_into("prpo.safe", std::span(safe_));
  since_refresh_ = state.get_one<std::int64_t>("prpo.since_refresh");
  clicks_below_ = state.get<double>("prpo.clicks_below");
  lists_ = state.get<std::int64_t>("prpo.lists");
  if (clicks_below_.size() != lists_.size()) state.fail("Its counts of clicks and lists differ in length.");
}

std::unique_ptr<OnlineRanker> make_prpo(const RankerRequest& request) {
  return make_on_first_model<PrpoRanker>(request);
}

void set_prpo_defaults(RankerSettings& settings, const DefaultsContext& /*context*/) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.1;
  settings.trainer.learning_rate_decay = 1.0;
}

}  // namespace olrank
