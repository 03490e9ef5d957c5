#include "models/baselines/dueling_bandit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/metrics/score_order.h"
#include "models/baselines/first_model.h"

namespace olrank {
namespace {

constexpr double kTemperature = 3.0;  // τ of 1/rank^τ in probabilistic interleaving

}  // namespace

std::int64_t candidates_of(const RankerSettings& settings) {
  return row_of(settings.kind).multileaves ? settings.bandit.candidates : 1;
}

DuelingBanditRanker::DuelingBanditRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings,
                                         TrialKeys keys, std::vector<float> first_theta)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
      candidates_(candidates_of(settings)),
      radius_(settings.bandit.exploration_radius),
      interleaving_(settings.bandit.interleaving),
      direction_key_(keys.key(Purpose::kDirection)),
      interleaving_key_(keys.key(Purpose::kInterleaving)) {}

Rankings DuelingBanditRanker::rankings(const QueryDocs& query) const {
  return {rankings_, 1 + candidates_, static_cast<std::size_t>(query.docs())};
}

void DuelingBanditRanker::draw_direction(std::uint32_t round, std::size_t candidate,
                                         std::span<double> direction) const {
  RngStream(direction_key_, round, static_cast<std::uint32_t>(candidate)).unit_vector(direction);
}

void DuelingBanditRanker::rank_candidates(RoundContext& context, const QueryDocs& query,
                                          std::uint32_t round) {
  if (has_scores_of(query, round)) return;
  const auto docs = static_cast<std::size_t>(query.docs());
  rankings_.resize((1 + candidates_) * docs);
  Scratch& scratch = context.execution.scratch();
  const Scratch::Frame frame(scratch);
  const auto direction = scratch.take<double>(theta().size());
  const auto tried = scratch.take<float>(theta().size());
  const auto scores = scratch.take<double>(docs);
  const auto row = [&](std::size_t ranker) { return std::span(rankings_).subspan(ranker * docs, docs); };
  for (std::size_t candidate = 0; candidate < candidates_; ++candidate) {
    {
      const auto measured = context.clock.measure("score");
      draw_direction(round, candidate, direction);
      for (std::size_t i = 0; i < tried.size(); ++i) {
        tried[i] = static_cast<float>(theta()[i] + radius_ * direction[i]);
      }
      score_with(context.execution, tried, query, round, scores);
    }
    const auto measured = context.clock.measure("rank");
    order_by_score(scores, row(1 + candidate), scratch);
  }
  // Last, so that known scores of a query and round imply known rankings.
  const auto current = scores_of(context, query, round);
  const auto measured = context.clock.measure("rank");
  order_by_score(current, row(0), scratch);

  const std::size_t known = rank_weights_.size();
  if (interleaving_ == Interleaving::kProbabilistic && known < docs) {
    rank_weights_.resize(docs);
    rank_weights(kTemperature, rank_weights_);
  }
}

RankedList DuelingBanditRanker::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  rank_candidates(context, query, round);
  const auto measured = context.clock.measure("rank");
  Scratch& scratch = context.execution.scratch();
  list_.resize(query.docs());
  if (interleaving_ == Interleaving::kTeamDraft) {
    teams_.resize(list_.size());
    team_draft(rankings(query), interleaving_key_, round, scratch, list_, teams_);
  } else {
    probabilistic_list(rankings(query), rank_weights_, interleaving_key_, round, scratch, list_);
  }
  return shown_list();
}

void DuelingBanditRanker::compare(RoundContext& context, const Feedback& feedback,
                                  std::span<double> preferences) {
  Scratch& scratch = context.execution.scratch();
  if (interleaving_ == Interleaving::kProbabilistic) {
    rank_candidates(context, feedback.query, feedback.round);
    const auto measured = context.clock.measure("train");
    probabilistic_preferences(rankings(feedback.query), rank_weights_, feedback.shown, feedback.clicks,
                              interleaving_key_, feedback.round, scratch, preferences);
    return;
  }
  // Drafting is a pure function of θ, query and round, so the teams of a drafted list can be recomputed.
  if (!has_scores_of(feedback.query, feedback.round)) rank(context, feedback.query, feedback.round);
  const auto measured = context.clock.measure("train");
  const std::size_t shown = feedback.shown.size();
  if (shown > list_.size() || !std::equal(feedback.shown.begin(), feedback.shown.end(), list_.begin())) {
    throw InvalidArgument(
        fmt::format("Ranker '{}' cannot learn from recorded lists with team-draft interleaving, and the "
                    "list of round {} "
                    "is not the one it drafted: set interleaving = \"probabilistic\".",
                    name(), feedback.round));
  }
  team_draft_preferences(std::span(teams_).first(shown), feedback.clicks, scratch, preferences);
}

LearnReport DuelingBanditRanker::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  Scratch& scratch = context.execution.scratch();
  const Scratch::Frame frame(scratch);
  const auto preferences = scratch.take<double>(1 + candidates_);
  compare(context, feedback, preferences);

  const auto measured = context.clock.measure("train");
  const auto mean = scratch.take<double>(theta().size());
  const auto direction = scratch.take<double>(theta().size());
  std::fill(mean.begin(), mean.end(), 0.0);
  std::size_t winners = 0;
  for (std::size_t candidate = 0; candidate < candidates_; ++candidate) {
    if (!(preferences[1 + candidate] > 0.0)) continue;
    ++winners;
    draw_direction(feedback.round, candidate, direction);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += direction[i];
  }
  if (winners > 0) {
    for (double& value : mean) value /= static_cast<double>(winners);
    move_along(mean);
  }
  end_round();
  return {};
}

std::unique_ptr<OnlineRanker> make_dueling_bandit(const RankerRequest& request) {
  return make_on_first_model<DuelingBanditRanker>(request);
}

void set_dueling_bandit_defaults(RankerSettings& settings, const DefaultsContext& context) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.01;
  if (context.protocol != ProtocolName::kReference && settings.kind == RankerKind::kDbgd)
    settings.trainer.learning_rate_decay = 0.999977;
  settings.bandit.candidates = context.chosen.bandit.interleaving == Interleaving::kProbabilistic ? 49 : 9;
}

}  // namespace olrank
