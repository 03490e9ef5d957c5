#include "models/baselines/ranknet_offline.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "core/error.h"
#include "core/metrics/score_order.h"
#include "models/baselines/first_model.h"
#include "models/labels/label_solver.h"
#include "models/linear/linear_model.h"

namespace olrank {
namespace {

std::vector<float> trained(const ScoreModel& model, const RankerSettings& settings, PhiloxKey key,
                           const LabelledQueries& labels, std::vector<float> theta) {
  if (settings.trainer.optimizer != Optimizer::kAdam) {
    throw InvalidArgument(
        fmt::format("Ranker '{}' has optimizer = \"{}\", but ranknet-offline supports only \"adam\".",
                    settings.name, name_of(settings.trainer.optimizer)));
  }
  if (theta.empty()) theta.resize(model.parameters());
  return train_offline(model, labels, settings, key, std::move(theta));
}

}  // namespace

std::vector<float> train_offline(const ScoreModel& model, const LabelledQueries& labels,
                                 const RankerSettings& settings, PhiloxKey key, std::vector<float> theta) {
  assert(std::ssize(theta) == model.parameters());
  LabelSettings fit;
  fit.loss = ListLoss::kRankNet;
  fit.pair_mean = true;
  fit.network = settings.network;
  fit.batch = settings.trainer.batch;
  fit.learning_rate = settings.trainer.learning_rate;
  fit.learning_rate_decay = settings.trainer.learning_rate_decay;
  LabelObjective objective(model, labels, fit.loss_form(0), 1);
  const auto adam = make_adam(fit, objective, key, std::move(theta));
  for (std::int64_t pass = 0; pass < settings.trainer.epochs; ++pass) adam->advance();
  return {adam->theta().begin(), adam->theta().end()};
}

std::vector<float> offline_linear_theta(const LabelledQueries& labels, std::int64_t features,
                                        std::int64_t fold) {
  const RankerSettings settings =
      RankerSettings::defaults(RankerKind::kRankNetOffline, ProtocolName::kRecommended);
  const PhiloxKey key =
      make_key({.seed = 0, .purpose = Purpose::kBatch, .fold = static_cast<std::uint64_t>(fold)});
  return train_offline(LinearModel(features), labels, settings, key, std::vector<float>(features));
}

RankNetOffline::RankNetOffline(std::unique_ptr<ScoreModel> model, const RankerSettings& settings,
                               TrialKeys keys, std::vector<float> first_theta,
                               const LabelledQueries& labels)
    : RankNetOffline(trained(*model, settings, keys.key(Purpose::kBatch), labels, std::move(first_theta)),
                     std::move(model), settings, keys) {}

RankNetOffline::RankNetOffline(std::vector<float> theta, std::unique_ptr<ScoreModel>&& model,
                               const RankerSettings& settings, TrialKeys keys)
    : ScoreModelRanker(std::move(model), settings, keys, std::move(theta)) {}

RankedList RankNetOffline::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  const auto scores = scores_of(context, query, round);
  const auto measured = context.clock.measure("rank");
  list_.resize(scores.size());
  order_by_score(scores, list_, context.execution.scratch());
  return {list_, std::nullopt};
}

LearnReport RankNetOffline::learn(RoundContext& context, const Feedback& feedback) {
  check(feedback, context.execution.scratch());
  end_round();
  return {};
}

std::unique_ptr<OnlineRanker> make_ranknet_offline(const RankerRequest& request) {
  return make_on_first_model<RankNetOffline>(request, *request.dependencies.labels);
}

void set_ranknet_offline_defaults(RankerSettings& settings, const DefaultsContext&) {
  // On synth:mslr-like the best of three for both forms: the decay steadies the last passes.
  settings.trainer.batch = 8;
  settings.trainer.optimizer = Optimizer::kAdam;
  settings.trainer.learning_rate = 0.03;
  settings.trainer.learning_rate_decay = 0.85;
}

}  // namespace olrank
