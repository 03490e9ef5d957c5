#include "models/linear/p2linrank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/feedback/preference_pairs.h"
#include "core/math/label_noise.h"
#include "models/frozen_list.h"
#include "models/linear/linear_ranking.h"
#include "models/score_order.h"

namespace olrank {
namespace {

/// Differences of scores up to this are rounding, and no vote.
double rounding_of(std::span<const float> member_scores) {
  float largest = 0.0F;
  for (const float score : member_scores) largest = std::max(largest, std::fabs(score));
  return rounding_of_scores(largest);
}

ModelTensors ensemble_tensors(const LinearModel& linear, std::span<const std::vector<float>> thetas) {
  ModelTensors model{{}, {{"architecture", "linear"}, {"members", fmt::format("{}", thetas.size())}}};
  for (std::size_t member = 0; member < thetas.size(); ++member) {
    ModelTensors one = linear.tensors(thetas[member]);
    for (auto& tensor : one.tensors) {
      tensor.name = fmt::format("members.{}.{}", member, tensor.name);
      model.tensors.push_back(std::move(tensor));
    }
  }
  return model;
}

class FrozenLinearEnsemble : public FrozenRanker {
 public:
  FrozenLinearEnsemble(const RankerSettings& settings, PhiloxKey list_key, std::vector<float> mean_theta,
                       std::vector<std::vector<float>> thetas)
      : settings_(settings),
        list_key_(list_key),
        model_(static_cast<std::int64_t>(mean_theta.size())),
        mean_theta_(std::move(mean_theta)),
        thetas_(std::move(thetas)) {}

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    const auto docs = static_cast<std::size_t>(task.docs.docs);
    score_and_order(context, model_, mean_theta_, task.docs, ranking.scores, ranking.by_score);
    const Scratch::Frame frame(context.scratch());
    const auto member_scores = context.scratch().take<float>(thetas_.size() * docs);
    for (std::size_t member = 0; member < thetas_.size(); ++member)
      model_.score(context, thetas_[member], task.docs, member_scores.subspan(member * docs, docs));
    certain_by_vote(static_cast<std::int64_t>(thetas_.size()), rounding_of(member_scores), member_scores,
                    ranking.by_score, ranking.orders);
    make_frozen_list(settings_.explore, list_key_, task, ranking);
  }
  ModelTensors model() const override { return ensemble_tensors(model_, thetas_); }

 private:
  RankerSettings settings_;
  PhiloxKey list_key_;
  LinearModel model_;
  std::vector<float> mean_theta_;
  std::vector<std::vector<float>> thetas_;
};

}  // namespace

P2LinRank::P2LinRank(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                     std::int64_t cutoff)
    : settings_(settings),
      cutoff_(cutoff),
      batch_key_(keys.key(Purpose::kBatch)),
      list_key_(keys.key(Purpose::kList)),
      model_(features),
      history_(features, FoldedPairs::kPadding),
      mean_theta_(static_cast<std::size_t>(features)),
      list_(settings.explore.list, settings.explore.refine, list_key_) {
  for (std::int64_t member = 0; member < settings.posterior.members; ++member) {
    members_.push_back({keys.key(Purpose::kLabelNoise, static_cast<std::uint64_t>(member)),
                        NewtonTrainer(padded_features(features), newton_options(settings.trainer)),
                        std::vector<float>(static_cast<std::size_t>(features)),
                        {}});
  }
}

RankedList P2LinRank::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  const auto docs = static_cast<std::size_t>(query.docs());
  {
    const auto measured = context.clock.measure("score");
    score_and_order(context.execution, model_, mean_theta_, query.features, scores_, by_score_);
    member_scores_.resize(members_.size() * docs);
    for (std::size_t member = 0; member < members_.size(); ++member) {
      model_.score(context.execution, members_[member].theta, query.features,
                   std::span(member_scores_).subspan(member * docs, docs));
    }
  }
  const auto measured = context.clock.measure("rank");
  certain_by_vote(static_cast<std::int64_t>(members_.size()), rounding_of(member_scores_), member_scores_,
                  by_score_, orders_);
  return list_.make(by_score_, orders_, round, cutoff_);
}

LearnReport P2LinRank::learn(RoundContext& context, const Feedback& feedback) {
  preference_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  if (pairs_.empty()) return {};
  {
    const auto measured = context.clock.measure("observe");
    history_.add(feedback.query, pairs_);
  }
  const auto measured = context.clock.measure("train");
  for (Member& member : members_) train(context.execution, member, feedback.round);
  average_members();
  return {pairs_, {}};
}

void P2LinRank::train(ExecutionContext& context, Member& member, std::uint32_t round) {
  const double noise = std::sqrt(settings_.posterior.noise_variance);
  const auto wins = history_.first_wins();
  const auto count = history_.count();
  perturbed_wins_.resize(wins.size());
  for (std::size_t pair = 0; pair < wins.size(); ++pair) {
    RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(pair));
    perturbed_wins_[pair] = noisy_labels(wins[pair], count[pair], noise, coins.normal());
  }
  const FoldedPairs pairs{history_.rows().data(), history_.distinct(), history_.stride(),
                          perturbed_wins_.data(), count.data()};
  const double ridge =
      ridge_weight(settings_.trainer.loss, settings_.posterior.lambda, history_.observed());
  member.latest_training = member.trainer.train(context, pairs, history_.observed(), ridge);
  take_parameters(member);
}

void P2LinRank::take_parameters(Member& member) {
  for (std::size_t k = 0; k < member.theta.size(); ++k) {
    member.theta[k] = static_cast<float>(member.trainer.theta()[k]);
  }
}

void P2LinRank::average_members() {
  for (std::size_t k = 0; k < mean_theta_.size(); ++k) {
    double sum = 0.0;
    for (const Member& member : members_) sum += double{member.theta[k]};
    mean_theta_[k] = static_cast<float>(sum / static_cast<double>(members_.size()));
  }
}

void P2LinRank::describe(const QueryDocs& query, bool full, RoundDetail& detail) {
  detail.scores.assign(scores_.begin(), scores_.end());
  if (!full) return;
  detail.theta.clear();
  for (const Member& member : members_) detail.theta.push_back(member.theta);
  write_certain_matrix(orders_, by_score_, query.docs(), detail.certain);
}

void P2LinRank::score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const {
  model_.score(context, mean_theta_, docs, scores);
}

std::int64_t P2LinRank::parameters() const {
  return model_.parameters() * static_cast<std::int64_t>(members_.size());
}

std::vector<std::vector<float>> P2LinRank::thetas() const {
  std::vector<std::vector<float>> thetas;
  for (const Member& member : members_) thetas.push_back(member.theta);
  return thetas;
}

ModelTensors P2LinRank::model() const {
  return ensemble_tensors(model_, thetas());
}

std::shared_ptr<const FrozenRanker> P2LinRank::freeze() const {
  return std::make_shared<FrozenLinearEnsemble>(settings_, list_key_, mean_theta_, thetas());
}

std::vector<RankerFigure> P2LinRank::figures(ExecutionContext&) const {
  double gap = 0.0;
  double gradient = 0.0;
  for (const Member& member : members_) {
    gap = std::max(gap, member.latest_training.optimality_gap);
    gradient = std::max(gradient, member.latest_training.gradient_norm);
  }
  return {{"optimality_gap", gap}, {"gradient_norm", gradient}};
}

void P2LinRank::save(StateWriter& state) const {
  history_.save(state);
  state.put("members", static_cast<std::int64_t>(members_.size()));
  for (const Member& member : members_) {
    member.trainer.save(state);
    state.put("training.gradient_norm", member.latest_training.gradient_norm);
    state.put("training.optimality_gap", member.latest_training.optimality_gap);
  }
}

void P2LinRank::load(StateReader& state) {
  history_.load(state);
  if (state.get_one<std::int64_t>("members") != static_cast<std::int64_t>(members_.size())) {
    state.fail("The saved ensemble has another number of members.");
  }
  for (Member& member : members_) {
    member.trainer.load(state);
    member.latest_training.gradient_norm = state.get_one<double>("training.gradient_norm");
    member.latest_training.optimality_gap = state.get_one<double>("training.optimality_gap");
    take_parameters(member);
  }
  average_members();
}

}  // namespace olrank
