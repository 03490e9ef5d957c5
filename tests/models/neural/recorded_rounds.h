#pragma once

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/saved_state.h"

// Neural rankers in all their forms, played in a small world.
namespace olrank {

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

inline const std::vector<std::string>& neural_names() {
  static const std::vector<std::string> names = words_of(
      "dual primal diagonal none three_layers theory lambdarank expected ensemble reference "
      "reference_lambdarank reference_ensemble growth growth_lambdarank growth_ensemble growth_expected "
      "waiting_growth after after_growth first fresh fresh_ensemble noisy_prior_ensemble "
      "noisy_prior_growth_ensemble reference_warm debiased_growth debiased_lambdarank");
  return names;
}

/// A ranker by what is special about it.
inline RankerSettings neural_settings(const std::string& name) {
  RankerKind kind = RankerKind::kOlRankNet;
  if (name.ends_with("lambdarank")) kind = RankerKind::kOlLambdaRank;
  if (name.ends_with("ensemble")) kind = RankerKind::kP2NeurRank;
  RankerSettings settings = RankerSettings::defaults(
      kind, name.starts_with("reference") ? ProtocolName::kReference : ProtocolName::kPaper);
  settings.name = name;
  settings.network.width = 8;
  settings.posterior.lambda = 0.5;
  settings.posterior.members = 3;
  settings.trainer.steps = 5;
  settings.trainer.epochs = 3;
  settings.trainer.batch = 16;
  settings.explore.alpha = 0.05;
  settings.posterior.form = name == "primal" ? CovarianceForm::kPrimal : CovarianceForm::kAuto;
  if (name == "dual") settings.posterior.form = CovarianceForm::kDual;
  if (name == "diagonal" || name == "reference") settings.posterior.covariance = Covariance::kDiagonal;
  if (name == "none") settings.posterior.covariance = Covariance::kNone;
  if (name.find("growth") != std::string::npos) {
    settings.trainer.retrain = Retrain::kGrowth;
    settings.trainer.replay = 64;
    settings.trainer.replay_steps = name.starts_with("waiting") ? 0 : 3;
    settings.feedback.pairs = PairRule::kAll;  // enough pairs for samples
  }
  if (name.ends_with("expected")) {
    settings.feedback.pairs = PairRule::kExpected;
    settings.network.parameterisation = Parameterisation::kStandard;
    settings.network.initialisation = FirstDraw::kSymmetric;
  }
  if (name == "three_layers") settings.network.depth = 3;
  if (name.starts_with("after")) settings.posterior.observe_at = ObserveAt::kAfter;
  if (name == "first") settings.trainer.restart = Restart::kFirst;
  if (name.starts_with("fresh")) settings.trainer.restart = Restart::kFresh;
  if (name == "reference_warm") settings.trainer.restart = Restart::kWarm;
  if (name.starts_with("debiased")) settings.feedback.debias = {1.0, 0.8, 0.45, 0.3};
  if (name.starts_with("noisy_prior")) settings.posterior.prior_noise = true;
  if (name == "theory") {
    settings.explore.alpha_schedule = AlphaSchedule::kTheory;
    settings.explore.c1 = 0.05;
    settings.explore.c2 = 0.5;
  }
  return settings;
}

/// Linear rankers with certain orders, and click models.
inline const std::vector<std::string>& linear_names() {
  static const std::vector<std::string> names =
      words_of("pairrank pairrank_growth p2linrank p2linrank_growth clickgp");
  return names;
}

/// Finds the settings of a ranker by its name in one of the three lists.
inline RankerSettings settings_named(const std::string& name) {
  const auto is_of = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_of(neural_names())) return neural_settings(name);
  RankerSettings settings =
      is_of(bandit_names())
          ? bandit_settings(name)
          : RankerSettings::defaults(*value_named<RankerKind>(name.substr(0, name.find('_'))),
                                     ProtocolName::kRecommended);
  settings.name = name;
  settings.network.network = NetworkForm::kLinear;
  settings.posterior.members = 3;
  if (name.ends_with("growth")) {
    settings.trainer.retrain = Retrain::kGrowth;
    settings.trainer.replay = 32;
    settings.feedback.pairs = PairRule::kAll;
  }
  return settings;
}

inline TrialKeys test_keys() {
  return TrialKeys::of(1, 1, "test");
}

inline std::unique_ptr<OnlineRanker> make_neural(const RankerSettings& settings, std::int64_t features,
                                                 std::int64_t cutoff = 10) {
  return make_ranker(settings, features, test_keys(), cutoff);
}

/// Holds what happened in a round.
struct RecordedRound {
  std::vector<std::int32_t> shown;
  std::vector<std::uint8_t> clicks;

  Feedback feedback(const SmallWorld& world, std::uint32_t round) const {
    return {round, world.query_of(round), shown, clicks};
  }
  friend bool operator==(const RecordedRound&, const RecordedRound&) = default;
};

/// A user who clicks on four of five relevant documents and one of five others, by the round's coins.
inline RecordedRound play_round(OnlineRanker& ranker, RoundContext& context, const SmallWorld& world,
                                std::uint32_t round, std::size_t cutoff = 10) {
  const QueryDocs query = world.query_of(round);
  RecordedRound played{shown_of(ranker.rank(context, query, round), cutoff), {}};
  played.clicks = clicks_where(played.shown, [&](std::int32_t doc) {
    RngStream coins(make_key({.seed = 3, .purpose = Purpose::kClick}), round,
                    static_cast<std::uint32_t>(doc));
    return coins.uniform() < (world.grade(query.query, doc) != 0 ? 0.8 : 0.2);
  });
  ranker.learn(context, played.feedback(world, round));
  return played;
}

/// Rounds of a ranker, and its state after them.
struct Course {
  std::vector<RecordedRound> rounds;
  std::string state;
};

inline Course play_course(OnlineRanker& ranker, const SmallWorld& world, std::uint32_t first,
                          std::uint32_t last, int threads = 1) {
  TestContext context(threads);
  Course course;
  for (std::uint32_t round = first; round <= last; ++round)
    course.rounds.push_back(play_round(ranker, context.round, world, round));
  course.state = state_of(ranker);
  return course;
}

/// Rankers of these settings come to the same lists and bits on any number of threads and after restarts.
inline void expect_same_bits(const RankerSettings& settings, const SmallWorld& world, std::uint32_t last,
                             const std::vector<std::uint32_t>& stops) {
  const auto play = [&](OnlineRanker& ranker, std::uint32_t from, std::uint32_t to, int threads) {
    return play_lists(from, to, threads, [&](RoundContext& context, std::uint32_t round) {
      return play_round(ranker, context, world, round).shown;
    });
  };
  expect_same_bits([&] { return make_neural(settings, world.features()); }, play, last, stops);
}

}  // namespace olrank
