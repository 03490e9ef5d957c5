#include "models/baselines/baselines.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "core/feedback/preference_pairs.h"
#include "core/math/any_cpu.h"
#include "core/math/pair_loss.h"
#include "core/metrics/list_metrics.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {
namespace {

/// Pairwise differentiable gradient descent: Oosterhuis and de Rijke, "Differentiable unbiased online
/// learning to rank", CIKM 2018, Algorithm 1. Lists are Plackett-Luce draws over the scores.
class PdgdRanker : public ScoreModelRanker {
 public:
  PdgdRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
             std::vector<float> first_theta)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
        list_key_(keys.key(Purpose::kList)) {}

  /// The denominators of its weights sum over all documents of the query.
  bool learns_from_unshown() const override { return true; }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    check(feedback, context.execution.scratch());
    preference_pairs({.pairs = PairRule::kAll, .debias = {}}, feedback.shown, feedback.clicks,
                     RngStream(list_key_, feedback.round), pairs_);
    if (!pairs_.empty()) {
      const auto scores = scores_of(context, feedback.query, feedback.round);
      const auto measured = context.clock.measure("train");
      Scratch& scratch = context.execution.scratch();
      const Scratch::Frame frame(scratch);
      const auto weights = scratch.take<double>(scores.size());
      plackett_luce_pair_weights(scores, feedback.shown, feedback.clicks, scratch, weights);
      follow_gradient(context.execution, feedback.query, weights);
    }
    end_round();
    return {pairs_, {}};
  }

 private:
  ScoreLists lists() const override {
    return [key = list_key_](ExecutionContext& context, const RankingTask& task,
                             std::span<const double> scores, std::vector<std::int32_t>& list,
                             std::vector<double>& propensity) {
      draw_plackett_luce(scores, key, task.round, context.scratch(), list, propensity);
    };
  }

  PhiloxKey list_key_;
  std::vector<PreferencePair> pairs_;
};

/// A sum of exponentials e^s, kept relative to its largest term: e^largest · ratio.
struct ExpSum {
  double largest = -std::numeric_limits<double>::infinity();
  double ratio = 0.0;

  void add(double score) {
    if (score <= largest) {
      ratio += exp_of(score - largest);
    } else {
      ratio = ratio * exp_of(largest - score) + 1.0;
      largest = score;
    }
  }
  double log() const { return largest + log_of(ratio); }
};

/// Two scores that change places, and what does not depend on the rank between them.
struct Swap {
  double lower = 0.0;
  double higher = 0.0;
  double lower_to_higher = 0.0;  // e^{lower − higher}

  Swap(double one, double other)
      : lower(std::min(one, other)),
        higher(std::max(one, other)),
        lower_to_higher(exp_of(lower - higher)) {}

  /// (E + e^lower) / (E + e^higher), in (0, 1].
  double factor(const ExpSum& others) const {
    if (others.largest <= higher) {
      const double e = others.ratio * exp_of(others.largest - higher);
      return (e + lower_to_higher) / (e + 1.0);
    }
    return (others.ratio + exp_of(lower - others.largest)) /
           (others.ratio + exp_of(higher - others.largest));
  }
};

}  // namespace

std::unique_ptr<OnlineRanker> make_pdgd(const RankerRequest& request) {
  return make_on_first_model<PdgdRanker>(request);
}

void set_pdgd_defaults(RankerSettings& settings, const DefaultsContext& context) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.1;
  // The papers print 0.999977, the authors' code has another nine.
  settings.trainer.learning_rate_decay =
      context.protocol == ProtocolName::kReference ? 0.9999977 : 0.999977;
}

void plackett_luce_keys(std::span<const double> scores, PhiloxKey key, std::uint32_t round,
                        std::span<double> keys) {
  assert(keys.size() == scores.size());
  // Zero, drawn once in 2^53 times, counts as the middle of its cell so that −log u stays finite.
  constexpr double kLowest = 0x1.0p-54;
  for (std::size_t doc = 0; doc < scores.size(); ++doc) {
    const double u = RngStream(key, round, static_cast<std::uint32_t>(doc)).uniform();
    keys[doc] = scores[doc] - log_of(-log_of(std::max(u, kLowest)));
  }
}

void plackett_luce_propensity(std::span<const double> scores, std::span<const std::int32_t> list,
                              std::vector<double>& propensity) {
  propensity.resize(list.size());
  ExpSum left;  // of the ranks from here on
  for (std::size_t rank = list.size(); rank-- > 0;) {
    left.add(scores[list[rank]]);
    propensity[rank] = exp_of(scores[list[rank]] - left.largest) / left.ratio;
  }
}

void draw_plackett_luce(std::span<const double> scores, PhiloxKey key, std::uint32_t round,
                        Scratch& scratch, std::vector<std::int32_t>& list,
                        std::vector<double>& propensity) {
  const Scratch::Frame frame(scratch);
  const auto keys = scratch.take<double>(scores.size());
  plackett_luce_keys(scores, key, round, keys);
  list.resize(scores.size());
  order_by_score(keys, list, scratch);
  plackett_luce_propensity(scores, list, propensity);
}

void plackett_luce_pair_weights(std::span<const double> scores, std::span<const std::int32_t> shown,
                                std::span<const std::uint8_t> clicks, Scratch& scratch,
                                std::span<double> weights) {
  assert(shown.size() == clicks.size() && weights.size() == scores.size());
  std::fill(weights.begin(), weights.end(), 0.0);
  const auto examined = static_cast<std::size_t>(examined_documents(clicks));
  if (examined < 2) return;

  const Scratch::Frame frame(scratch);
  const auto placed = scratch.take<bool>(scores.size());
  const auto score_at = scratch.take<double>(examined);  // by rank
  std::fill(placed.begin(), placed.end(), false);
  for (std::size_t rank = 0; rank < examined; ++rank) {
    const auto doc = static_cast<std::size_t>(shown[rank]);
    placed[doc] = true;
    score_at[rank] = scores[doc];
  }
  ExpSum behind;  // everything after the current rank
  for (std::size_t doc = 0; doc < scores.size(); ++doc) {
    if (!placed[doc]) behind.add(scores[doc]);
  }

  const auto others = scratch.take<ExpSum>(examined);  // E_r
  for (std::size_t b = examined - 1; b > 0; --b) {
    ExpSum sum = behind;
    for (std::size_t r = b; r > 0; --r) {
      others[r] = sum;
      sum.add(score_at[r - 1]);
    }
    for (std::size_t a = 0; a < b; ++a) {
      if ((clicks[a] != 0) == (clicks[b] != 0)) continue;
      const Swap swap(score_at[a], score_at[b]);
      double product = 1.0;  // every factor lies on the same side of 1, so that nothing overflows
      for (std::size_t r = a + 1; r <= b; ++r) product *= swap.factor(others[r]);
      // The product is P(R*)/P(R) where rank a has the higher score, and its inverse elsewhere.
      const double rho = (score_at[a] >= score_at[b] ? product : 1.0) / (1.0 + product);
      const double z = score_at[a] - score_at[b];
      const double weight = rho * sigmoid(z) * sigmoid(-z);
      const bool first_wins = clicks[a] != 0;
      weights[shown[a]] += first_wins ? weight : -weight;
      weights[shown[b]] += first_wins ? -weight : weight;
    }
    behind.add(score_at[b]);
  }
}

}  // namespace olrank
