#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/data/normaliser.h"
#include "core/data/synthetic.h"
#include "core/online/online_ranker.h"
#include "sim/trial.h"
#include "sim/trial_settings.h"
#include "tests/support/saved_state.h"
#include "tests/support/slow_ndcg.h"

namespace olrank {

/// Synthetic data as a trial sees it.
inline TrialData small_trial_data(const std::string& source) {
  ExecutionContext context;
  const SyntheticParts parts = make_synthetic(source, context);
  FittedNormaliser normaliser;
  normaliser.kind = Normalisation::kQueryMinmax;
  normaliser.features = parts.train.features();
  return {normaliser.apply(parts.train, context), normaliser.apply(parts.test, context),
          std::max(parts.train.max_grade(), parts.test.max_grade())};
}

/// A trial with everything around it but the ranker.
struct TrialStage {
  TrialStage(const TrialSettings& settings, const TrialData& data, OnlineRanker& ranker,
             std::uint64_t seed = 1, const std::string& user = "navigational", int threads = 1,
             const ClickSettings& of_clicks = ClickSettings::defaults(ProtocolName::kRecommended),
             const std::vector<UserSettings>& users = {}, const TrialFairness* fairness = nullptr)
      : keys(TrialKeys::of(seed, 1, user)),
        execution(threads),
        queries(keys.key(Purpose::kQuery), data.train.queries()),
        clicks(make_user(user, of_clicks, users, data.max_grade)),
        trial(settings, data, {.queries = &queries, .clicks = clicks.get(), .fairness = fairness}, keys,
              ranker, execution) {}

  /// Plays until `rounds` are played, and evaluates on the way what is due, at the end only if `last`.
  void play_to(std::int64_t rounds, bool last, std::vector<std::string>& lines) {
    for (;;) {
      const bool at_end = trial.rounds_played() == rounds;
      if (trial.evaluation_due() && (!at_end || last))
        lines.push_back(curve_line(trial.evaluate(), nullptr));
      if (at_end) return;
      trial.play_round();
    }
  }
  std::string state() const { return state_of(trial); }

  TrialKeys keys;
  ExecutionContext execution;
  UniformQueries queries;
  std::unique_ptr<ClickModel> clicks;
  Trial trial;
};

inline std::vector<std::int64_t> every_round(std::int64_t rounds) {
  std::vector<std::int64_t> all(rounds + 1);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// A trial that is saved in one of these rounds, before or behind the evaluation that may be due there, and
/// loaded by another one goes on to the curve and the state of a trial that was never saved.
template <class MakeRanker>
void expect_same_curve_from(const std::vector<std::int64_t>& rounds, const TrialSettings& settings,
                            const TrialData& data, const MakeRanker& make_ranker) {
  std::vector<std::string> straight;
  const auto ranker = make_ranker();
  TrialStage whole(settings, data, *ranker);
  whole.play_to(settings.rounds, true, straight);
  ASSERT_GE(straight.size(), 4U);
  for (const std::int64_t at : rounds) {
    for (const bool evaluated : {false, true}) {
      std::vector<std::string> lines;
      const auto first = make_ranker();
      TrialStage before(settings, data, *first);
      before.play_to(at, evaluated, lines);
      const std::string saved = before.state();
      const auto second = make_ranker();
      TrialStage after(settings, data, *second);
      if (at % 2 == 0) after.trial.play_round();  // what it played before is gone
      load_state(after.trial, saved);
      ASSERT_EQ(after.state(), saved) << at;
      ASSERT_EQ(after.trial.rounds_played(), at);
      after.play_to(settings.rounds, true, lines);
      ASSERT_EQ(lines, straight) << "saved at " << at << (evaluated ? ", evaluated" : "");
      ASSERT_EQ(after.state(), whole.state()) << "saved at " << at;
    }
  }
}

/// The smallest thing that ranks and learns: θ·x, moved towards what was clicked. It claims certain orders
/// that follow from the round alone, so that a test can add them up.
class StubRanker : public OnlineRanker {
 public:
  StubRanker(std::int64_t features, bool certainty = true)
      : theta_(features, 0.0F), certainty_(certainty) {}

  static ListCertainty certainty_of(std::uint32_t round, std::int64_t docs) {
    ListCertainty certainty;
    const std::int64_t shown = std::min<std::int64_t>(10, docs);
    certainty.shown_pairs = shown * (shown - 1) / 2;
    certainty.certain_pairs = certainty.shown_pairs * (round % 4) / 4;
    certainty.blocks = 1 + round % 7;
    for (std::size_t i = 0; i < certainty.block_size.size(); ++i)
      certainty.block_size[i] = docs >= ListCertainty::kBlockRanks[i] ? (round + 1) % (i + 3) : 0;
    return certainty;
  }

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const auto measured = context.clock.measure("score");
    scores_.resize(query.docs());
    score(context.execution, query.features, scores_);
    list_.resize(scores_.size());
    std::iota(list_.begin(), list_.end(), 0);
    std::stable_sort(list_.begin(), list_.end(),
                     [&](std::int32_t i, std::int32_t j) { return scores_[i] > scores_[j]; });
    if (!certainty_) return {list_, std::nullopt};
    return {list_, certainty_of(round, query.docs())};
  }
  LearnReport learn(RoundContext&, const Feedback& feedback) override {
    pairs_.clear();
    for (std::size_t rank = 0; rank + 1 < feedback.shown.size(); rank += 2) {
      if (feedback.clicks[rank] == feedback.clicks[rank + 1]) continue;
      const std::size_t winner = feedback.clicks[rank] != 0 ? rank : rank + 1;
      pairs_.push_back({feedback.shown[winner], feedback.shown[winner == rank ? rank + 1 : rank]});
    }
    for (const auto& [winner, loser] : pairs_) {
      for (std::size_t k = 0; k < theta_.size(); ++k) {
        theta_[k] +=
            0.1F * (feedback.query.features.doc(winner)[k] - feedback.query.features.doc(loser)[k]);
      }
    }
    steps_ = {0.1};
    return {pairs_, pairs_.empty() ? std::span<const double>() : std::span<const double>(steps_)};
  }
  void describe(const QueryDocs&, bool full, RoundDetail& detail) override {
    detail.scores.assign(scores_.begin(), scores_.end());
    if (full) detail.theta = {theta_};
  }
  void score(ExecutionContext&, FeatureMatrix docs, std::span<float> scores) const override {
    for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
      float sum = 0.0F;
      for (std::size_t k = 0; k < theta_.size(); ++k) sum += theta_[k] * docs.doc(doc)[k];
      scores[doc] = sum;
    }
  }
  std::int64_t parameters() const override { return std::ssize(theta_); }
  ModelTensors model() const override {
    return {{{"linear.weight", {1, parameters()}, theta_}}, {{"architecture", "linear"}}};
  }
  std::vector<RankerFigure> figures(ExecutionContext&) const override {
    return {{"drift", double{theta_[0]}}, {"optimality_gap", 0.25}};
  }
  void save(StateWriter& state) const override { state.put("stub.theta", theta_); }
  void load(StateReader& state) override { state.get_into("stub.theta", std::span(theta_)); }

  const std::vector<std::int32_t>& latest_list() const { return list_; }

 private:
  std::vector<float> theta_;
  bool certainty_;
  std::vector<float> scores_;
  std::vector<std::int32_t> list_;
  std::vector<PreferencePair> pairs_;
  std::vector<double> steps_;
};

}  // namespace olrank
