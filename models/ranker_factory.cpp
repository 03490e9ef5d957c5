#include "models/ranker_factory.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "core/text/byte_size.h"
#include "models/dueling_bandit.h"
#include "models/lambdarank_labels.h"
#include "models/linear/linear_model.h"
#include "models/linear/linear_ranking.h"
#include "models/linear/p2linrank.h"
#include "models/linear/pairrank.h"
#include "models/network_shape.h"
#include "models/neural/confident_network.h"
#include "models/neural/p2neurrank.h"
#include "models/neural/ranker_network.h"
#include "models/pdgd.h"
#include "models/ranker_plan.h"
#include "models/ranknet.h"
#include "models/ranknet_offline.h"

namespace olrank {
namespace {

/// The scoring function of a ranker that follows a gradient or tries neighbours, with its first parameters.
struct FirstModel {
  std::unique_ptr<ScoreModel> model;
  std::vector<float> theta;  // empty: zeros
};

FirstModel first_model(const RankerSettings& settings, std::int64_t features, const TrialKeys& keys,
                       std::span<const std::vector<float>> first_thetas) {
  const bool linear = settings.network.network == NetworkForm::kLinear;
  if (!first_thetas.empty()) {
    if (linear) return {std::make_unique<LinearModel>(features), first_thetas.front()};
    return {std::make_unique<NetworkModel>(settings.network, features), first_thetas.front()};
  }
  if (linear) return {std::make_unique<LinearModel>(features), {}};
  return {std::make_unique<NetworkModel>(settings.network, features),
          first_parameters(settings.network, network_shape(settings.network, features),
                           keys.key(Purpose::kInitialisation))};
}

template <class Ranker>
std::unique_ptr<OnlineRanker> make_on_model(const RankerSettings& settings, std::int64_t features,
                                            const TrialKeys& keys,
                                            std::span<const std::vector<float>> first_thetas) {
  FirstModel first = first_model(settings, features, keys, first_thetas);
  return std::make_unique<Ranker>(std::move(first.model), settings, keys, std::move(first.theta));
}

template <class Ranker>
std::unique_ptr<OnlineRanker> make_on_labels(const RankerSettings& settings, std::int64_t features,
                                             const TrialKeys& keys, const LabelledQueries* labels) {
  if (labels == nullptr) {
    throw InvalidArgument(
        fmt::format("Ranker '{}' learns from true grades, as every '{}' does, and there are none here: "
                    "choose a kind that learns from clicks.",
                    settings.name, name_of(settings.kind)));
  }
  FirstModel first = first_model(settings, features, keys, {});
  return std::make_unique<Ranker>(std::move(first.model), settings, keys, std::move(first.theta), *labels);
}

void check_start(const RankerSettings& settings, std::int64_t features,
                 std::span<const std::vector<float>> first_thetas) {
  if (!can_start_from_model(settings.kind)) {
    throw InvalidArgument(fmt::format(
        "Ranker '{}' cannot start from a model: a '{}' fits its whole history anew and would forget it. "
        "Choose olranknet, ollambdarank, p2neurrank, pdgd or ranknet.",
        settings.name, name_of(settings.kind)));
  }
  const auto members =
      static_cast<std::size_t>(settings.kind == RankerKind::kP2NeurRank ? settings.posterior.members : 1);
  const NetworkShape shape = settings.network.network == NetworkForm::kLinear
                                 ? linear_shape(features)
                                 : network_shape(settings.network, features);
  const auto parameters = static_cast<std::size_t>(shape.parameters());
  for (const auto& theta : first_thetas) {
    if (first_thetas.size() == members && theta.size() == parameters) continue;
    throw InvalidArgument(
        fmt::format("Ranker '{}' has {} members of {} parameters, and the model has {} of {}: give it the "
                    "model's size.",
                    settings.name, members, parameters, first_thetas.size(), theta.size()));
  }
}

/// Kinds that have one form alone do not take the other's name.
void check_form(const RankerSettings& settings) {
  const bool linear = settings.network.network == NetworkForm::kLinear;
  switch (settings.kind) {
    case RankerKind::kPairRank:
    case RankerKind::kP2LinRank:
      if (linear) return;
      break;
    case RankerKind::kOlRankNet:
    case RankerKind::kOlLambdaRank:
    case RankerKind::kP2NeurRank:
      if (!linear) return;
      break;
    default:
      return;
  }
  throw InvalidArgument(
      fmt::format("Ranker '{}' cannot have network = \"{}\", as every '{}' is {}: leave it out, or choose "
                  "another kind.",
                  settings.name, name_of(settings.network.network), name_of(settings.kind),
                  linear ? "a network" : "linear"));
}

/// Steps on the sum are shares of the largest stable one.
void check_step(const RankerSettings& settings) {
  const bool by_curvature = settings.kind == RankerKind::kOlRankNet ||
                            settings.kind == RankerKind::kOlLambdaRank ||
                            settings.kind == RankerKind::kP2NeurRank;
  if (!by_curvature || settings.trainer.loss != LossForm::kSum ||
      settings.trainer.optimizer == Optimizer::kAdam || settings.trainer.learning_rate <= 1.0)
    return;
  throw InvalidArgument(fmt::format(
      "Ranker '{}' has learning_rate = {}, which with optimizer = \"{}\" is a share of the largest "
      "stable step: at most 1.",
      settings.name, settings.trainer.learning_rate, name_of(settings.trainer.optimizer)));
}

/// A mean over matchings needs pairs with weights.
void check_pairs(const RankerSettings& settings) {
  if (settings.feedback.pairs != PairRule::kExpected) return;
  switch (settings.kind) {
    case RankerKind::kOlRankNet:
    case RankerKind::kP2NeurRank:
      if (settings.trainer.loss == LossForm::kSum) return;
      break;
    case RankerKind::kPairRank:
    case RankerKind::kP2LinRank:
    case RankerKind::kOlLambdaRank:
    case RankerKind::kRankNet:
      break;
    default:
      return;  // kinds with pairs of their own
  }
  throw InvalidArgument(fmt::format(
      "Ranker '{}' cannot weigh its pairs: pairs = \"expected\" is for olranknet and p2neurrank "
      "with loss = \"sum\". Choose \"matched\".",
      settings.name));
}

}  // namespace

void check_on_cpu(const RankerSettings& settings) {
  if (settings.trainer.precision == Precision::kFloat32) return;
  throw InvalidArgument(fmt::format(
      "Ranker '{}' asks for precision = \"{}\", which is for training on a GPU, and it is computed "
      "on the CPU: leave it at \"float32\"{}.",
      settings.name, name_of(settings.trainer.precision),
      why_not_on_device(settings) ? "" : ", or use --device cuda"));
}

bool can_start_from_model(RankerKind kind) {
  switch (kind) {
    case RankerKind::kOlRankNet:
    case RankerKind::kOlLambdaRank:
    case RankerKind::kP2NeurRank:
    case RankerKind::kPdgd:
    case RankerKind::kRankNet:
      return true;
    default:
      return false;
  }
}

std::unique_ptr<OnlineRanker> make_ranker(const RankerSettings& settings, std::int64_t features,
                                          const TrialKeys& keys, std::int64_t cutoff,
                                          const RankerDependencies& dependencies) {
  const auto first = dependencies.first_thetas;
  if (!first.empty()) check_start(settings, features, first);
  check_form(settings);
  check_pairs(settings);
  if (dependencies.home != nullptr)
    return std::make_unique<DeviceRanker>(features, settings, keys, cutoff, *dependencies.home);
  check_on_cpu(settings);
  switch (settings.kind) {
    case RankerKind::kPairRank:
      return std::make_unique<PairRank>(features, settings, keys, cutoff);
    case RankerKind::kP2LinRank:
      return std::make_unique<P2LinRank>(features, settings, keys, cutoff);
    case RankerKind::kPdgd:
      return make_on_model<PdgdRanker>(settings, features, keys, first);
    case RankerKind::kDbgd:
    case RankerKind::kMgd:
      return make_on_model<DuelingBanditRanker>(settings, features, keys, first);
    case RankerKind::kRankNet:
      return make_on_model<RankNetRanker>(settings, features, keys, first);
    case RankerKind::kOlRankNet:
    case RankerKind::kOlLambdaRank:
      return std::make_unique<ConfidentNetwork>(features, settings, keys, cutoff, dependencies.memory,
                                                first.empty() ? std::vector<float>() : first.front());
    case RankerKind::kP2NeurRank:
      return std::make_unique<P2NeurRank>(features, settings, keys, cutoff, first);
    case RankerKind::kLambdaRankLabels:
      return make_on_labels<LambdaRankLabels>(settings, features, keys, dependencies.labels);
    case RankerKind::kRankNetOffline:
      return make_on_labels<RankNetOffline>(settings, features, keys, dependencies.labels);
  }
  throw InvalidArgument(fmt::format("Ranker '{}' is of no kind that there is.", settings.name));
}

bool needs_labels(RankerKind kind) {
  return kind == RankerKind::kLambdaRankLabels || kind == RankerKind::kRankNetOffline;
}

void check_ranker(const RankerSettings& settings, std::int64_t cutoff) {
  check_step(settings);
  // A network may be too large even to be tried.
  const RankerPlan plan = plan_ranker(settings, {.features = 1, .rounds = 1, .cutoff = cutoff});
  const std::int64_t memory = available_memory();
  if (plan.bytes > memory) {
    throw InvalidArgument(
        fmt::format("Ranker '{}' has {} parameters with a single feature and needs {}, and this machine "
                    "gives {}: {}.",
                    settings.name, plan.parameters, readable_bytes(static_cast<double>(plan.bytes)),
                    readable_bytes(static_cast<double>(memory)), advice_on_memory(plan, memory)));
  }
  const LabelledQueries none;
  make_ranker(settings, 1, TrialKeys{}, cutoff, {.labels = &none});
}

}  // namespace olrank
