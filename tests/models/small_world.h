#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/online/online_ranker.h"
#include "models/ranker_kinds.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

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
    std::vector<std::uint8_t> clicks;
    for (const std::int32_t doc : shown) clicks.push_back(grade(query, doc));
    return clicks;
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
      std::vector<std::uint8_t> grades = perfect_clicks(number, order);
      const double dcg = dcg_of(grades, k);
      std::sort(grades.begin(), grades.end(), std::greater<>());
      sum += dcg / dcg_of(grades, k);
    }
    return sum / static_cast<double>(queries_);
  }

 private:
  static double dcg_of(const std::vector<std::uint8_t>& grades, std::size_t k) {
    double sum = 0.0;
    for (std::size_t rank = 0; rank < std::min(k, grades.size()); ++rank) {
      sum += grades[rank] / std::log2(static_cast<double>(rank) + 2.0);
    }
    return sum;
  }

  std::int64_t queries_;
  std::int64_t docs_;
  std::int64_t features_;
  std::vector<float> values_;
  std::vector<std::uint8_t> grades_;
};

/// A context for tests that do not care where things are computed.
struct TestContext {
  ExecutionContext execution;
  StageClock clock;
  RoundContext round{execution, clock};
};

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
  RankerKind kind = RankerKind::kRankNet;
  if (name.starts_with("pdgd")) kind = RankerKind::kPdgd;
  if (name.starts_with("dbgd")) kind = RankerKind::kDbgd;
  if (name.starts_with("mgd")) kind = RankerKind::kMgd;
  RankerSettings chosen;
  chosen.kind = kind;
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
