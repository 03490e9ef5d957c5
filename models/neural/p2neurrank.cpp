#include "models/neural/p2neurrank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/feedback/preference_pairs.h"
#include "models/neural/ranker_network.h"
#include "models/score_order.h"

namespace olrank {

P2NeurRank::P2NeurRank(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                       std::int64_t cutoff)
    : settings_(settings),
      cutoff_(cutoff),
      batch_key_(keys.key(Purpose::kBatch)),
      shape_(network_shape(settings.network, features)),
      history_(features, false),
      list_(settings.explore.list, settings.explore.refine, keys.key(Purpose::kList)) {
  for (std::int64_t number = 0; number < settings.posterior.members; ++number) {
    const auto of_member = static_cast<std::uint64_t>(number);
    auto member = std::make_unique<Member>();
    member->noise_key = keys.key(Purpose::kLabelNoise, of_member);
    member->first_theta =
        first_parameters(settings.network, shape_, keys.key(Purpose::kInitialisation, of_member));
    member->theta = member->first_theta;
    member->trainer = make_network_trainer({shape_, settings.trainer, settings.posterior.lambda,
                                            prior_scale(settings.network), member->first_theta,
                                            keys.key(Purpose::kBatch, of_member)});
    members_.push_back(std::move(member));
  }
}

void P2NeurRank::score_members(ExecutionContext& context, FeatureMatrix docs) {
  const auto count = static_cast<std::size_t>(docs.docs);
  member_scores_.resize(members_.size() * count);
  magnitudes_.resize(count);
  scores_.resize(count);
  float largest = 0.0F;
  for (std::size_t member = 0; member < members_.size(); ++member) {
    score_docs(context, shape_, members_[member]->theta, docs,
               std::span(member_scores_).subspan(member * count, count), magnitudes_);
    for (const float magnitude : magnitudes_) largest = std::max(largest, magnitude);
  }
  rounding_ = kScoreRounding * double{largest};
  for (std::size_t doc = 0; doc < count; ++doc) {
    double sum = 0.0;
    for (std::size_t member = 0; member < members_.size(); ++member)
      sum += double{member_scores_[member * count + doc]};
    scores_[doc] = static_cast<float>(sum / static_cast<double>(members_.size()));
  }
}

RankedList P2NeurRank::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  {
    const auto measured = context.clock.measure("score");
    score_members(context.execution, query.features);
    order_by_score(context.execution, scores_, by_score_);
  }
  const auto measured = context.clock.measure("rank");
  certain_by_vote(static_cast<std::int64_t>(members_.size()), rounding_, member_scores_, by_score_,
                  orders_);
  return list_.make(by_score_, orders_, round, cutoff_);
}

/// The loss is linear in the labels, so the noise of a pair's repetitions counts as their sum, N(0, weight
/// ν²): one draw a distinct pair has the very distribution of one a repetition.
void P2NeurRank::perturb(Member& member, std::uint32_t round) {
  const double noise = std::sqrt(settings_.posterior.noise_variance);
  const auto terms = history_.terms();
  member.perturbed.assign(terms.begin(), terms.end());
  for (std::size_t t = 0; t < terms.size(); ++t) {
    RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(t));
    member.perturbed[t].labels += noise * std::sqrt(terms[t].weight) * coins.normal();
  }
}

LearnReport P2NeurRank::learn(RoundContext& context, const Feedback& feedback) {
  preference_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  if (pairs_.empty()) return {};
  {
    const auto measured = context.clock.measure("observe");
    history_.add(feedback, pairs_);
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
  certain_by_vote(static_cast<std::int64_t>(members_.size()), rounding_, member_scores_, by_score_,
                  orders_);
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
  ModelTensors model;
  for (std::size_t number = 0; number < members_.size(); ++number) {
    ModelTensors one = network_tensors(settings_.network, shape_, members_[number]->theta);
    if (number == 0) model.architecture = one.architecture;
    for (auto& tensor : one.tensors) {
      tensor.name = fmt::format("members.{}.{}", number, tensor.name);
      model.tensors.push_back(std::move(tensor));
    }
  }
  model.architecture.emplace_back("members", fmt::format("{}", members_.size()));
  return model;
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
