#include "models/baselines/baselines.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/metrics/list_metrics.h"
#include "core/throw_error.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {
namespace {

constexpr double kTemperature = 3.0;  // τ of 1/rank^τ in probabilistic interleaving

/// Dueling bandit gradient descent, by the kind in the settings:
/// - dbgd: Yue and Joachims, "Interactively optimizing information retrieval systems as a dueling bandits
///   problem", ICML 2009, Algorithm 1: one candidate, θ + δu with u uniform on the unit sphere;
/// - mgd: Schuth et al., "Multileave gradient descent for fast online learning to rank", WSDM 2016: many
///   candidates at once, and the mean of those that win.
/// The current ranker and the candidates share a list; θ ← θ + η_t mean(u) over the candidates that its
/// clicks prefer to the current ranker. mgd with one candidate is dbgd, so both are one class.
class DuelingBanditRanker : public ScoreModelRanker {
 public:
  DuelingBanditRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                      std::vector<float> first_theta)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
        candidates_(candidates_of(settings)),
        radius_(settings.bandit.exploration_radius),
        interleaving_(settings.bandit.interleaving),
        direction_key_(keys.key(Purpose::kDirection)),
        interleaving_key_(keys.key(Purpose::kInterleaving)) {}

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
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
  /// With team-draft interleaving, throws InvalidArgument for a list that this ranker did not draft with
  /// these parameters: its teams are unknown.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
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

 private:
  Rankings rankings(const QueryDocs& query) const {
    return {rankings_, 1 + candidates_, static_cast<std::size_t>(query.docs())};
  }
  void rank_candidates(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
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
  void draw_direction(std::uint32_t round, std::size_t candidate, std::span<double> direction) const {
    RngStream(direction_key_, round, static_cast<std::uint32_t>(candidate)).unit_vector(direction);
  }
  void compare(RoundContext& context, const Feedback& feedback, std::span<double> preferences) {
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
      throw_error<InvalidArgument>(
          "Ranker '{}' cannot learn from recorded lists with team-draft interleaving, and the list of "
          "round {} is not the one it drafted: set interleaving = \"probabilistic\".",
          name(), feedback.round);
    }
    team_draft_preferences(std::span(teams_).first(shown), feedback.clicks, scratch, preferences);
  }

  std::size_t candidates_;
  double radius_;  // δ
  Interleaving interleaving_;
  PhiloxKey direction_key_;
  PhiloxKey interleaving_key_;

  // These belong to the query and round that scores_of() knows; they are not state.
  std::vector<std::int32_t> rankings_;  // [1 + candidates × V]
  std::vector<std::int32_t> teams_;     // team-draft
  std::vector<double> rank_weights_;    // 1/rank^τ of as many ranks as any query had
};

std::span<bool> none_placed(Scratch& scratch, std::size_t docs) {
  const auto placed = scratch.take<bool>(docs);
  std::fill(placed.begin(), placed.end(), false);
  return placed;
}

/// The remaining weight of a ranker. Summed from scratch each time: once the best documents are placed, the
/// rest is too small to be computed by subtraction.
double remaining_weight(std::span<const std::int32_t> ranking, std::span<const double> weights,
                        std::span<const bool> placed) {
  double sum = 0.0;
  for (std::size_t rank = 0; rank < ranking.size(); ++rank)
    sum += placed[ranking[rank]] ? 0.0 : weights[rank];
  return sum;
}

/// The document at which the running sum of remaining weights passes `level`.
std::int32_t doc_at(double level, std::span<const std::int32_t> ranking, std::span<const double> weights,
                    std::span<const bool> placed) {
  double sum = 0.0;
  std::int32_t last = -1;  // where rounding keeps the sum just below the level
  for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
    if (placed[ranking[rank]]) continue;
    last = ranking[rank];
    sum += weights[rank];
    if (sum > level) break;
  }
  return last;
}

}  // namespace

std::int64_t candidates_of(const RankerSettings& settings) {
  return row_of(settings.kind).multileaves ? settings.bandit.candidates : 1;
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

void team_draft(const Rankings& rankings, PhiloxKey key, std::uint32_t round, Scratch& scratch,
                std::span<std::int32_t> list, std::span<std::int32_t> teams) {
  assert(list.size() == rankings.docs && teams.size() == rankings.docs);
  const Scratch::Frame frame(scratch);
  const auto placed = none_placed(scratch, rankings.docs);
  const auto next =
      scratch.take<std::size_t>(rankings.rankers);  // rank at which a ranker continues its search
  const auto order = scratch.take<std::int32_t>(rankings.rankers);
  std::fill(next.begin(), next.end(), std::size_t{0});
  std::size_t rank = 0;
  for (std::uint32_t cycle = 0; rank < rankings.docs; ++cycle) {
    std::iota(order.begin(), order.end(), 0);
    RngStream(key, round, 0, cycle).shuffle(order);
    for (std::size_t turn = 0; turn < order.size() && rank < rankings.docs; ++turn, ++rank) {
      const auto ranking = rankings.of(order[turn]);
      std::size_t& best = next[order[turn]];
      while (placed[ranking[best]]) ++best;
      placed[ranking[best]] = true;
      list[rank] = ranking[best];
      teams[rank] = order[turn];
    }
  }
}

void team_draft_preferences(std::span<const std::int32_t> teams, std::span<const std::uint8_t> clicks,
                            Scratch& scratch, std::span<double> preferences) {
  assert(teams.size() == clicks.size());
  const Scratch::Frame frame(scratch);
  const auto counts = scratch.take<std::int32_t>(preferences.size());
  std::fill(counts.begin(), counts.end(), 0);
  for (std::size_t rank = 0; rank < teams.size(); ++rank) counts[teams[rank]] += clicks[rank] != 0;
  for (std::size_t r = 0; r < preferences.size(); ++r)
    preferences[r] = (counts[r] > counts[0]) - (counts[r] < counts[0]);
}

void rank_weights(double temperature, std::span<double> weights) {
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    weights[rank] = std::pow(static_cast<double>(rank + 1), -temperature);
  }
}

void probabilistic_list(const Rankings& rankings, std::span<const double> weights, PhiloxKey key,
                        std::uint32_t round, Scratch& scratch, std::span<std::int32_t> list) {
  assert(list.size() == rankings.docs && weights.size() >= rankings.docs);
  const Scratch::Frame frame(scratch);
  const auto placed = none_placed(scratch, rankings.docs);
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    RngStream coins(key, round, 0, static_cast<std::uint32_t>(rank));
    const auto ranking = rankings.of(coins.index(static_cast<std::uint32_t>(rankings.rankers)));
    const double level = coins.uniform() * remaining_weight(ranking, weights, placed);
    list[rank] = doc_at(level, ranking, weights, placed);
    placed[list[rank]] = true;
  }
}

void assignment_posterior(const Rankings& rankings, std::span<const double> weights,
                          std::span<const std::int32_t> placed, std::int32_t doc, Scratch& scratch,
                          std::span<double> posterior) {
  assert(posterior.size() == rankings.rankers && weights.size() >= rankings.docs);
  const Scratch::Frame frame(scratch);
  const auto is_placed = none_placed(scratch, rankings.docs);
  for (const std::int32_t earlier : placed) is_placed[earlier] = true;
  double total = 0.0;
  for (std::size_t r = 0; r < rankings.rankers; ++r) {
    const auto ranking = rankings.of(r);
    const auto rank =
        static_cast<std::size_t>(std::find(ranking.begin(), ranking.end(), doc) - ranking.begin());
    posterior[r] = weights[rank] / remaining_weight(ranking, weights, is_placed);
    total += posterior[r];
  }
  for (double& share : posterior) share /= total;
}

void probabilistic_preferences(const Rankings& rankings, std::span<const double> weights,
                               std::span<const std::int32_t> shown, std::span<const std::uint8_t> clicks,
                               PhiloxKey key, std::uint32_t round, Scratch& scratch,
                               std::span<double> preferences) {
  assert(preferences.size() == rankings.rankers && shown.size() == clicks.size());
  std::fill(preferences.begin(), preferences.end(), 0.0);
  const auto clicked = static_cast<std::size_t>(
      std::count_if(clicks.begin(), clicks.end(), [](std::uint8_t click) { return click != 0; }));
  if (clicked == 0) return;

  const Scratch::Frame frame(scratch);
  const std::size_t rankers = rankings.rankers;
  const auto shares = scratch.take<double>(clicked * rankers);  // running sums of each click's posterior
  std::size_t row = 0;
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    if (clicks[rank] == 0) continue;
    const auto share = shares.subspan(row * rankers, rankers);
    assignment_posterior(rankings, weights, shown.first(rank), shown[rank], scratch, share);
    std::partial_sum(share.begin(), share.end(), share.begin());
    ++row;
  }

  const auto counts = scratch.take<std::int32_t>(rankers);
  const auto sums = scratch.take<std::int32_t>(rankers);
  std::fill(sums.begin(), sums.end(), 0);
  RngStream coins(key, round, 1);
  for (int sample = 0; sample < kSampledAssignments; ++sample) {
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t click = 0; click < clicked; ++click) {
      // The last ranker needs no bound: rounding may leave its sum just below 1.
      const auto share = shares.subspan(click * rankers, rankers - 1);
      ++counts[std::upper_bound(share.begin(), share.end(), coins.uniform()) - share.begin()];
    }
    for (std::size_t r = 0; r < rankers; ++r) sums[r] += (counts[r] > counts[0]) - (counts[r] < counts[0]);
  }
  for (std::size_t r = 0; r < rankers; ++r) preferences[r] = sums[r] / double{kSampledAssignments};
}

}  // namespace olrank
