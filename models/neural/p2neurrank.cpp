#include "models/neural/p2neurrank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/math/certainty.h"
#include "core/math/label_noise.h"
#include "models/frozen_list.h"
#include "models/neural/ensemble_tensors.h"
#include "models/neural/ranker_network.h"
#include "models/score_order.h"

namespace olrank {
namespace {

/// Every member's scores [members × V] and their mean [V]; returns what differences of scores may be by
/// rounding.
double score_ensemble(ExecutionContext& context, const NetworkShape& shape,
                      std::span<const std::span<const float>> thetas, FeatureMatrix docs,
                      std::span<float> member_scores, std::span<float> scores) {
  const std::size_t count = scores.size();
  const Scratch::Frame frame(context.scratch());
  const auto magnitudes = context.scratch().take<float>(count);
  float largest = 0.0F;
  for (std::size_t member = 0; member < thetas.size(); ++member) {
    score_docs(context, shape, thetas[member], docs, member_scores.subspan(member * count, count),
               magnitudes);
    for (const float magnitude : magnitudes) largest = std::max(largest, magnitude);
  }
  for (std::size_t doc = 0; doc < count; ++doc) {
    double sum = 0.0;
    for (std::size_t member = 0; member < thetas.size(); ++member)
      sum += double{member_scores[member * count + doc]};
    scores[doc] = static_cast<float>(sum / static_cast<double>(thetas.size()));
  }
  return rounding_of_scores(largest);
}

class FrozenEnsemble : public FrozenRanker {
 public:
  FrozenEnsemble(const RankerSettings& settings, const NetworkShape& shape, PhiloxKey list_key,
                 std::vector<std::vector<float>> thetas)
      : settings_(settings), shape_(shape), list_key_(list_key), owned_(std::move(thetas)) {
    thetas_.assign(owned_.begin(), owned_.end());
  }

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    const auto docs = static_cast<std::size_t>(task.docs.docs);
    const Scratch::Frame frame(context.scratch());
    const auto member_scores = context.scratch().take<float>(thetas_.size() * docs);
    ranking.scores.resize(docs);
    const double rounding =
        score_ensemble(context, shape_, thetas_, task.docs, member_scores, ranking.scores);
    order_by_score(context, ranking.scores, ranking.by_score);
    certain_by_vote(static_cast<std::int64_t>(thetas_.size()), rounding, member_scores, ranking.by_score,
                    ranking.orders);
    make_frozen_list(settings_.explore, list_key_, task, ranking);
  }
  ModelTensors model() const override { return ensemble_tensors(settings_.network, shape_, thetas_); }

 private:
  RankerSettings settings_;
  NetworkShape shape_;
  PhiloxKey list_key_;
  std::vector<std::vector<float>> owned_;
  std::vector<std::span<const float>> thetas_;
};

}  // namespace

P2NeurRank::P2NeurRank(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                       std::int64_t cutoff, std::span<const std::vector<float>> first_thetas)
    : settings_(settings),
      cutoff_(cutoff),
      batch_key_(keys.key(Purpose::kBatch)),
      list_key_(keys.key(Purpose::kList)),
      shape_(network_shape(settings.network, features)),
      history_(features, false),
      list_(settings.explore.list, settings.explore.refine, list_key_) {
  for (std::int64_t number = 0; number < settings.posterior.members; ++number) {
    const auto of_member = static_cast<std::uint64_t>(number);
    auto member = std::make_unique<Member>();
    member->noise_key = keys.key(Purpose::kLabelNoise, of_member);
    member->first_theta =
        first_thetas.empty()
            ? first_parameters(settings.network, shape_, keys.key(Purpose::kInitialisation, of_member))
            : first_thetas[static_cast<std::size_t>(number)];
    member->theta = member->first_theta;
    member->trainer = make_network_trainer({shape_, settings.trainer, settings.posterior.lambda,
                                            prior_scale(settings.network), member->first_theta,
                                            keys.key(Purpose::kBatch, of_member)});
    thetas_.emplace_back(member->theta);
    members_.push_back(std::move(member));
  }
}

RankedList P2NeurRank::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  double rounding = 0.0;
  {
    const auto measured = context.clock.measure("score");
    const auto docs = static_cast<std::size_t>(query.docs());
    member_scores_.resize(members_.size() * docs);
    scores_.resize(docs);
    rounding = score_ensemble(context.execution, shape_, thetas_, query.features, member_scores_, scores_);
    order_by_score(context.execution, scores_, by_score_);
  }
  const auto measured = context.clock.measure("rank");
  certain_by_vote(static_cast<std::int64_t>(members_.size()), rounding, member_scores_, by_score_, orders_);
  return list_.make(by_score_, orders_, round, cutoff_);
}

void P2NeurRank::perturb(Member& member, std::uint32_t round) {
  const double noise = std::sqrt(settings_.posterior.noise_variance);
  const auto terms = history_.terms();
  member.perturbed.assign(terms.begin(), terms.end());
  for (std::size_t t = 0; t < terms.size(); ++t) {
    RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(t));
    member.perturbed[t].labels = noisy_labels(terms[t].labels, terms[t].weight, noise, coins.normal());
  }
}

LearnReport P2NeurRank::learn(RoundContext& context, const Feedback& feedback) {
  preference_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  if (pairs_.empty()) return {};
  {
    const auto measured = context.clock.measure("observe");
    loss_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks, pairs_, loss_pairs_);
    history_.add(feedback, loss_pairs_.pairs, loss_pairs_.weight);
  }
  const auto measured = context.clock.measure("train");
  while (static_cast<int>(worker_contexts_.size()) < context.execution.threads()) {
    worker_contexts_.push_back(std::make_unique<ExecutionContext>());
  }
  steps_.assign(members_.size(), 0.0);
  bool stepped = true;
  context.execution.for_blocks(
      static_cast<std::int64_t>(members_.size()), 1, [&](std::int64_t number, std::int64_t, int worker) {
        Member& member = *members_[static_cast<std::size_t>(number)];
        perturb(member, feedback.round);
        const auto step =
            member.trainer->train(*worker_contexts_[static_cast<std::size_t>(worker)],
                                  {history_, member.perturbed, false, feedback.round}, member.theta);
        steps_[static_cast<std::size_t>(number)] = step.value_or(std::nan(""));
      });
  for (const double step : steps_) stepped = stepped && std::isfinite(step);
  if (!stepped) steps_.clear();
  return {pairs_, steps_};
}

void P2NeurRank::describe(const QueryDocs& query, bool full, RoundDetail& detail) {
  detail.scores.assign(scores_.begin(), scores_.end());
  if (!full) return;
  detail.theta.clear();
  for (const auto& member : members_) detail.theta.push_back(member->theta);
  write_certain_matrix(orders_, by_score_, query.docs(), detail.certain);
}

void P2NeurRank::score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const {
  std::vector<float> of_member(scores.size());
  std::vector<double> sums(scores.size());
  for (const auto& member : members_) {
    score_docs(context, shape_, member->theta, docs, of_member);
    for (std::size_t doc = 0; doc < sums.size(); ++doc) sums[doc] += double{of_member[doc]};
  }
  for (std::size_t doc = 0; doc < sums.size(); ++doc) {
    scores[doc] = static_cast<float>(sums[doc] / static_cast<double>(members_.size()));
  }
}

std::int64_t P2NeurRank::parameters() const {
  return shape_.parameters() * static_cast<std::int64_t>(members_.size());
}

ModelTensors P2NeurRank::model() const {
  return ensemble_tensors(settings_.network, shape_, thetas_);
}

std::shared_ptr<const FrozenRanker> P2NeurRank::freeze() const {
  std::vector<std::vector<float>> thetas;
  for (const auto& member : members_) thetas.push_back(member->theta);
  return std::make_shared<FrozenEnsemble>(settings_, shape_, list_key_, std::move(thetas));
}

std::vector<RankerFigure> P2NeurRank::figures(ExecutionContext&) const {
  return {};
}

void P2NeurRank::save(StateWriter& state) const {
  history_.save(state);
  state.put("members", static_cast<std::int64_t>(members_.size()));
  for (const auto& member : members_) {
    state.put("theta", member->theta);
    member->trainer->save(state);
  }
}

void P2NeurRank::load(StateReader& state) {
  history_.load(state);
  if (state.get_one<std::int64_t>("members") != static_cast<std::int64_t>(members_.size())) {
    state.fail("The saved ensemble has another number of members.");
  }
  for (const auto& member : members_) {
    state.get_into("theta", std::span(member->theta));
    member->trainer->load(state);
  }
}

}  // namespace olrank
