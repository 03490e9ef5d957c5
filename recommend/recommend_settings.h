#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/settings/schema.h"
#include "recommend/factors/factor_settings.h"
#include "recommend/recommender_kind.h"
#include "recommend/review_split.h"
#include "recommend/trees/tree_settings.h"

namespace olrank {

/// Which pass's model a training keeps: the last one's, or that of the best validation NDCG.
enum class KeptPass { kBest, kLast };
template <>
struct EnumNames<KeptPass> {
  static constexpr std::array values = {std::pair{KeptPass::kBest, std::string_view("best")},
                                        std::pair{KeptPass::kLast, std::string_view("last")}};
};

/// The gain of a held-out item: 1, or 2^rating − 1.
enum class HeldOutGain { kBinary, kGraded };
template <>
struct EnumNames<HeldOutGain> {
  static constexpr std::array values = {std::pair{HeldOutGain::kBinary, std::string_view("binary")},
                                        std::pair{HeldOutGain::kGraded, std::string_view("graded")}};
};

/// The table [recommend]: data, split, training and evaluation of one recommender, and the settings of its
/// kind.
struct RecommendSettings {
  RecommenderKind kind = RecommenderKind::kMter;
  std::string data;
  double scale = 5.0;  // N
  std::int64_t feature_support = 0;
  std::int64_t review_support = 0;
  std::int64_t item_support = 0;
  std::int64_t user_support = 0;
  std::int64_t frequent_features = 0;  // 0: all
  SplitBy split = SplitBy::kReviews;
  double train_share = 0.8;
  double validation_share = 0.1;
  double test_users = 0.05;
  std::int64_t seed = 1;
  std::int64_t passes = 0;  // 0: by kind
  std::int64_t eval_every = 1;
  std::int64_t patience = 0;  // 0: never stop early
  KeptPass keep = KeptPass::kBest;
  std::int64_t cutoff = 50;
  HeldOutGain gain = HeldOutGain::kBinary;
  FactorSettings factors;
  TreeSettings trees;

  static const Schema& schema();
  SplitSettings split_settings() const {
    return {split, train_share, validation_share, test_users, static_cast<std::uint64_t>(seed)};
  }
};

/// Throws InvalidArgument for settings that exclude each other.
void check_recommend_settings(const RecommendSettings& settings);

}  // namespace olrank
