#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "models/ranker_kinds.h"
#include "models/skeleton/ranker_settings.h"
#include "tests/support/saved_state.h"
#include "tests/support/slow_ndcg.h"

namespace olrank {

using ShownDocs = std::vector<std::int32_t>;

/// So many documents in any order.
inline ShownDocs shuffled(RngStream& draws, std::int64_t docs) {
  ShownDocs made(docs);
  std::iota(made.begin(), made.end(), 0);
  draws.shuffle(std::span(made));
  return made;
}

/// Clicks on those of the shown documents for which `clicked` holds.
template <class Clicked>
std::vector<std::uint8_t> clicks_where(std::span<const std::int32_t> shown, const Clicked& clicked) {
  std::vector<std::uint8_t> clicks;
  for (const std::int32_t doc : shown) clicks.push_back(clicked(doc) ? 1 : 0);
  return clicks;
}

/// Queries whose documents are relevant where a hidden linear function is among its highest third.
class SmallWorld {
 public:
  SmallWorld(std::uint64_t seed, std::int64_t queries, std::int64_t docs, std::int64_t features)
      : queries_(queries), docs_(docs), features_(features) {
    RngStream draws(make_key({.seed = seed, .purpose = Purpose::kSynthetic}), 0);
    std::vector<double> hidden(features);
    draws.unit_vector(hidden);
    const auto relevant = static_cast<std::size_t>((docs + 2) / 3);
    for (std::int64_t query = 0; query < queries; ++query) {
      std::vector<double> utility;
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        double sum = 0.0;
        for (const double weight : hidden) {
          values_.push_back(static_cast<float>(draws.uniform()));
          sum += weight * values_.back();
        }
        utility.push_back(sum);
      }
      std::vector<double> sorted = utility;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      for (const double value : utility) grades_.push_back(value >= sorted[relevant - 1] ? 1 : 0);
    }
  }

  std::int64_t queries() const { return queries_; }
  std::int64_t features() const { return features_; }
  QueryDocs query(std::int64_t number) const {
    return {number, number * docs_, {values_.data() + number * docs_ * features_, docs_, features_}};
  }
  QueryDocs query_of(std::uint32_t round) const { return query(round % queries_); }
  std::uint8_t grade(std::int64_t query, std::int32_t doc) const { return grades_[query * docs_ + doc]; }

  /// A perfect user: clicks on what is relevant, and on nothing else.
  std::vector<std::uint8_t> perfect_clicks(std::int64_t query, std::span<const std::int32_t> shown) const {
    return clicks_where(shown, [&](std::int32_t doc) { return grade(query, doc) != 0; });
  }

  /// The mean NDCG@k of the current model over all queries.
  double ndcg(const OnlineRanker& ranker, std::size_t k) const {
    ExecutionContext execution;
    double sum = 0.0;
    for (std::int64_t number = 0; number < queries_; ++number) {
      std::vector<float> scores(docs_);
      ranker.score(execution, query(number).features, scores);
      std::vector<std::int32_t> order(scores.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
      const std::vector<std::uint8_t> grades = perfect_clicks(number, order);
      sum += slow_ndcg({grades.begin(), grades.end()}, k);
    }
    return sum / static_cast<double>(queries_);
  }

 private:
  std::int64_t queries_;
  std::int64_t docs_;
  std::int64_t features_;
  std::vector<float> values_;
  std::vector<std::uint8_t> grades_;
};

/// A SmallWorld as a data set, whose grades rankers may be given.
class LabelledWorld : public SmallWorld {
 public:
  LabelledWorld(std::uint64_t seed, std::int64_t queries, std::int64_t docs, std::int64_t features)
      : SmallWorld(seed, queries, docs, features), data_(data_set(*this, docs)) {}

  LabelledQueries labels() const { return LabelledQueries(data_); }
  const Dataset& data() const { return data_; }

 private:
  struct Memory {
    std::vector<float> values;
    std::vector<std::uint8_t> grades;
    std::vector<std::int64_t> offsets = {0};
  };

  static Dataset data_set(const SmallWorld& world, std::int64_t docs) {
    auto memory = std::make_shared<Memory>();
    Dataset::Contents contents;
    for (std::int64_t number = 0; number < world.queries(); ++number) {
      const FeatureMatrix features = world.query(number).features;
      memory->values.insert(memory->values.end(), features.values,
                            features.values + docs * features.features);
      for (std::int32_t doc = 0; doc < docs; ++doc) memory->grades.push_back(world.grade(number, doc));
      memory->offsets.push_back(memory->offsets.back() + docs);
      contents.qids.push_back(std::to_string(number));
    }
    contents.values = memory->values;
    contents.grades = memory->grades;
    contents.offsets = memory->offsets;
    contents.features = world.features();
    contents.memory = memory;
    return Dataset(std::move(contents));
  }

  Dataset data_;
};

inline double dot(std::span<const double> w, std::span<const float> x) {
  return std::inner_product(w.begin(), w.end(), x.begin(), 0.0);
}

/// Gives the queries of the data these weights, over and over if there are more queries.
inline Dataset weighted(const Dataset& data, const std::vector<float>& weights) {
  Dataset::Contents contents = data.contents();
  for (std::int64_t query = 0; query < data.queries(); ++query)
    contents.weights.push_back(weights[static_cast<std::size_t>(query) % weights.size()]);
  return Dataset(std::move(contents));
}

inline QueryDocs query_docs(const LabelledQueries& labels, std::int64_t query) {
  return {query, labels.data().offset(query), labels.data().features_of(query)};
}

/// A context for tests that do not care where things are computed.
struct TestContext {
  explicit TestContext(int threads = 1) : execution(threads) {}

  ExecutionContext execution;
  StageClock clock;
  RoundContext round{execution, clock};
};

/// A model file that says nothing beyond the model's architecture, whatever the tensors hold.
inline std::string plain_file_of(const ModelTensors& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& tensor : model.tensors) tensors.push_back({tensor.name, tensor.shape, tensor.values});
  return safetensors_bytes(tensors, model.architecture);
}

/// All tensors of a model one after another: of an ensemble, member after member.
inline std::vector<float> flat_theta(const ModelTensors& model) {
  std::vector<float> theta;
  for (const auto& tensor : model.tensors)
    theta.insert(theta.end(), tensor.values.begin(), tensor.values.end());
  return theta;
}
inline std::vector<float> flat_theta(const OnlineRanker& ranker) {
  return flat_theta(ranker.model());
}

inline std::vector<float> scores_of(const OnlineRanker& ranker, FeatureMatrix docs) {
  ExecutionContext execution;
  std::vector<float> scores(docs.docs);
  ranker.score(execution, docs, scores);
  return scores;
}

/// Returns the ranker's detail of a query's list in the round after `rounds`.
inline RoundDetail detail_of(OnlineRanker& ranker, const QueryDocs& query, std::uint32_t rounds) {
  TestContext context;
  RoundDetail detail;
  ranker.rank(context.round, query, rounds + 1);
  ranker.describe(query, true, detail);
  return detail;
}

/// The documents of a list that are shown: its first ones.
inline ShownDocs shown_of(const RankedList& list, std::size_t cutoff) {
  const auto first = list.docs.first(std::min(cutoff, list.docs.size()));
  return {first.begin(), first.end()};
}

/// A round in which the first `cutoff` documents of the list are shown, and `clicks_of(shown)` is learned.
template <class ClicksOf>
ShownDocs play_list(OnlineRanker& ranker, RoundContext& context, const QueryDocs& query,
                    std::uint32_t round, std::size_t cutoff, const ClicksOf& clicks_of) {
  const ShownDocs shown = shown_of(ranker.rank(context, query, round), cutoff);
  const std::vector<std::uint8_t> clicks = clicks_of(shown);
  ranker.learn(context, {round, query, shown, clicks});
  return shown;
}

/// A round of a perfect user.
inline ShownDocs play_perfect(OnlineRanker& ranker, RoundContext& context, const SmallWorld& world,
                              std::uint32_t round, std::size_t cutoff) {
  const QueryDocs query = world.query_of(round);
  return play_list(ranker, context, query, round, cutoff,
                   [&](const ShownDocs& shown) { return world.perfect_clicks(query.query, shown); });
}

/// The lists of some rounds, each by play_round(context, round).
template <class PlayRound>
std::vector<ShownDocs> play_lists(std::uint32_t first, std::uint32_t last, int threads,
                                  const PlayRound& play_round) {
  TestContext context(threads);
  std::vector<ShownDocs> lists;
  for (std::uint32_t round = first; round <= last; ++round)
    lists.push_back(play_round(context.round, round));
  return lists;
}

/// Several threads, and rankers that go on from what is saved after these rounds, come to the lists and the
/// bits of a whole course, whose state is returned. `play(ranker, first, last, threads)` plays rounds and
/// returns their lists.
template <class Make, class Play>
std::string expect_same_bits(const Make& make, const Play& play, std::uint32_t last,
                             const std::vector<std::uint32_t>& stops) {
  const auto whole = make();
  const std::vector<ShownDocs> lists = play(*whole, 1, last, 1);
  const std::string expected = state_of(*whole);
  EXPECT_FALSE(expected == state_of(*make())) << "nothing was learned";
  for (const int threads : {2, 4}) {
    const auto more = make();
    EXPECT_EQ(play(*more, 1, last, threads), lists) << threads;
    EXPECT_TRUE(state_of(*more) == expected) << threads;
  }
  const auto first = make();
  std::uint32_t played = 0;
  for (const std::uint32_t stop : stops) {
    play(*first, played + 1, stop, 1);
    played = stop;
    const auto frozen = first->freeze();  // may share memory
    const auto second = make();
    play(*second, 1, 3, 1);  // loading replaces what these rounds taught
    load_state(*second, state_of(*first));
    EXPECT_TRUE(state_of(*second) == state_of(*first)) << stop;
    EXPECT_EQ(play(*second, stop + 1, last, 1), std::vector<ShownDocs>(lists.begin() + stop, lists.end()));
    EXPECT_TRUE(state_of(*second) == expected) << "saved after round " << stop;
  }
  return expected;
}

/// Every ranker without a posterior, in each of its forms.
inline const std::vector<std::string>& bandit_names() {
  static const std::vector<std::string> names = {
      "pdgd",           "dbgd_team_draft", "dbgd_probabilistic", "mgd_team_draft", "mgd_probabilistic",
      "ranknet_greedy", "ranknet_epsilon"};
  return names;
}

inline RankerSettings bandit_settings(const std::string& name) {
  const Interleaving interleaving =
      name.ends_with("probabilistic") ? Interleaving::kProbabilistic : Interleaving::kTeamDraft;
  RankerSettings chosen;
  chosen.kind = value_named<RankerKind>(name.substr(0, name.find('_'))).value();
  chosen.bandit.interleaving = interleaving;
  RankerSettings settings = RankerSettings::defaults(chosen, ProtocolName::kReference);
  settings.name = name;
  settings.bandit.interleaving = interleaving;
  if (name.ends_with("epsilon")) {
    settings.bandit.exploration = SimpleExploration::kEpsilon;
    settings.bandit.epsilon = 0.2;
  }
  return settings;
}

/// The name of a case whose parameter is a text.
inline constexpr auto kOwnName = [](const auto& info) { return info.param; };

constexpr std::int64_t kSmallCutoff = 5;

inline std::unique_ptr<OnlineRanker> make_bandit(RankerSettings settings, std::int64_t features,
                                                 const std::vector<float>& first_theta = {}) {
  settings.network.network = NetworkForm::kLinear;
  RankerDependencies dependencies;
  if (!first_theta.empty()) dependencies.first_thetas = std::span(&first_theta, 1);
  return row_of(settings.kind)
      .make({settings, features, TrialKeys::of(1, 1, "test"), kSmallCutoff, dependencies});
}

inline std::vector<float> theta_of(const OnlineRanker& ranker) {
  return ranker.model().tensors.front().values;
}

}  // namespace olrank
