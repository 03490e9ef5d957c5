#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/neural/device_ranker.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/models/neural/recorded_rounds.h"

// Rankers on a device in all their forms, played in a small world.
namespace olrank::small_device_rankers {

inline constexpr std::int64_t kFeatures = 5;
inline constexpr std::int64_t kDocs = 12;
inline constexpr std::uint32_t kRounds = 8;

inline const SmallWorld& world() {
  static const SmallWorld made(81, 6, kDocs, kFeatures);
  return made;
}

inline RankerSettings settings_of(const std::string& name) {
  if (name.ends_with("_recorded")) {
    RankerSettings settings = settings_of(name.substr(0, name.size() - 9));
    settings.trainer.training_kernel = TrainingKernel::kRecorded;
    return settings;
  }
  RankerSettings settings = neural_settings(name);
  settings.trainer.steps = 3;
  settings.network.width = 4;
  // The last batch is smaller, and steps are small enough to keep the precision that θ is compared with.
  settings.trainer.epochs = 2;
  settings.trainer.batch = 7;
  if (settings.trainer.loss == LossForm::kMean) settings.trainer.learning_rate = 0.01;
  if (name == "reference_gd") {
    settings.trainer.optimizer = Optimizer::kGradientDescent;
    settings.trainer.learning_rate = 0.3;
  }
  if (name == "nesterov") settings.trainer.optimizer = Optimizer::kNesterov;
  if (name == "adam") {
    settings.trainer.optimizer = Optimizer::kAdam;
    settings.trainer.learning_rate = 0.01;
    settings.trainer.learning_rate_decay = 0.9;
  }
  if (name.starts_with("shadow")) {
    settings.posterior.covariance = Covariance::kDiagonal;
    settings.posterior.shadow = ShadowCovariance::kFull;
    settings.explore.alpha = 0.3;
    if (name.starts_with("shadow_dual")) settings.posterior.form = CovarianceForm::kDual;
    if (name.starts_with("shadow_primal")) settings.posterior.form = CovarianceForm::kPrimal;
  }
  if (name.find("growth") != std::string::npos) {
    settings.trainer.retrain_growth = 0.2;
    settings.trainer.replay = 24;
    settings.trainer.replay_steps = std::min<std::int64_t>(settings.trainer.replay_steps, 4);
    if (name == "growth_three_layers") settings.network.depth = 3;
    if (name == "growth_nesterov") settings.trainer.optimizer = Optimizer::kNesterov;
  }
  if (name == "growth_adam") {
    settings.trainer.optimizer = Optimizer::kAdam;
    settings.trainer.learning_rate = 0.01;
    settings.trainer.replay_steps = 5;  // more than in other rounds
  }
  return settings;
}

inline FeatureMatrix all_features(const SmallWorld& of = world()) {
  return {of.query(0).features.values, of.queries() * of.query(0).docs(), kFeatures};
}

/// A device with all documents of a world.
inline RankerDevice place_of(const SmallWorld& of = world()) {
  RankerDevice place;
  place.train = place.eval_docs = all_features(of);
  place.most_docs = of.query(0).docs();
  return place;
}

inline std::unique_ptr<OnlineRanker> make_on_device(const RankerSettings& settings,
                                                    std::int64_t cutoff = 10, int device = 0,
                                                    std::shared_ptr<DeviceBatch> batch = {}) {
  RankerDevice place = place_of();
  place.gpu = device;
  place.batch = std::move(batch);
  return std::make_unique<DeviceRanker>(kFeatures, settings, test_keys(), cutoff, place,
                                        device::make_network);
}

/// A list of a query with the numbers behind it.
struct Detail {
  RoundDetail round;
  std::vector<std::int32_t> list;
};

inline Detail list_and_detail_of(OnlineRanker& ranker, const QueryDocs& query, std::uint32_t round) {
  TestContext context;
  Detail detail;
  const auto docs = ranker.rank(context.round, query, round).docs;
  detail.list.assign(docs.begin(), docs.end());
  ranker.describe(query, true, detail.round);
  return detail;
}
inline Detail list_and_detail_of(OnlineRanker& ranker, std::int64_t query, std::uint32_t round) {
  return list_and_detail_of(ranker, world().query(query), round);
}

/// Samples begin once a history has 200 pairs.
inline std::uint32_t rounds_of(const std::string& name) {
  return name.find("growth") == std::string::npos ? kRounds : 17;
}

}  // namespace olrank::small_device_rankers
