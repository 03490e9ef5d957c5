#include "models/ranknet_offline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/math/pair_loss.h"
#include "core/metrics/score_order.h"
#include "models/first_model.h"
#include "models/linear/linear_model.h"

namespace olrank {
namespace {

class Adam {
 public:
  explicit Adam(std::size_t parameters) : mean_(parameters), square_(parameters) {}

  void step(double learning_rate, std::span<const double> gradient, std::span<float> theta) {
    constexpr double kMeanDecay = 0.9;
    constexpr double kSquareDecay = 0.999;
    constexpr double kEpsilon = 1e-8;
    mean_left_ *= kMeanDecay;
    square_left_ *= kSquareDecay;
    const double rate = learning_rate / (1.0 - mean_left_);
    const double scale = 1.0 / (1.0 - square_left_);
    for (std::size_t k = 0; k < theta.size(); ++k) {
      mean_[k] = kMeanDecay * mean_[k] + (1.0 - kMeanDecay) * gradient[k];
      square_[k] = kSquareDecay * square_[k] + (1.0 - kSquareDecay) * gradient[k] * gradient[k];
      theta[k] =
          static_cast<float>(theta[k] - rate * mean_[k] / (std::sqrt(scale * square_[k]) + kEpsilon));
    }
  }

 private:
  std::vector<double> mean_;
  std::vector<double> square_;
  double mean_left_ = 1.0;  // β^t
  double square_left_ = 1.0;
};

/// A query's pairs of different grades, numbered from 0 with the best grade's winners first.
class GradePairs {
 public:
  explicit GradePairs(QueryGrades grades) : by_grade_(grades.of_doc.size()), before_(by_grade_.size() + 1) {
    std::iota(by_grade_.begin(), by_grade_.end(), 0);
    const auto grade = [&](std::int32_t doc) { return grades.of_doc[doc]; };
    std::stable_sort(by_grade_.begin(), by_grade_.end(),
                     [&](std::int32_t a, std::int32_t b) { return grade(a) > grade(b); });
    std::size_t worse = 0;
    for (std::size_t place = 0; place < by_grade_.size(); ++place) {
      while (worse < by_grade_.size() && grade(by_grade_[worse]) >= grade(by_grade_[place])) ++worse;
      before_[place + 1] = before_[place] + static_cast<std::int64_t>(by_grade_.size() - worse);
    }
  }

  std::int64_t count() const { return before_.back(); }
  PreferencePair at(std::int64_t number) const {
    const auto behind = std::upper_bound(before_.begin(), before_.end(), number);
    const auto place = static_cast<std::size_t>(behind - before_.begin()) - 1;
    // Losers are the last documents of all.
    const auto loser = by_grade_.size() - static_cast<std::size_t>(before_[place + 1] - number);
    return {by_grade_[place], by_grade_[loser]};
  }

 private:
  std::vector<std::int32_t> by_grade_;
  std::vector<std::int64_t> before_;  // pairs of winners at places before
};

/// Adds the query's share of Σ_pairs −∇ log σ(z) to `gradient` and returns the number of its pairs.
class QueryGradient {
 public:
  QueryGradient(const ScoreModel& model, const LabelledQueries& labels, PhiloxKey key)
      : model_(model), labels_(labels), key_(key) {
    pairs_.reserve(labels.queries());
    for (std::int64_t query = 0; query < labels.queries(); ++query)
      pairs_.emplace_back(labels.grades_of(query));
  }

  std::int64_t add(std::uint32_t epoch, std::int64_t query, std::span<const float> theta,
                   std::span<double> gradient) {
    const GradePairs& pairs = pairs_[query];
    if (pairs.count() == 0) return 0;
    const FeatureMatrix docs = labels_.docs_of(query).features;
    scores_.resize(docs.docs);
    weights_.assign(scores_.size(), 0.0);
    model_.score(context_, theta, docs, scores_);
    for (const float score : scores_) {
      if (std::isfinite(score)) continue;
      throw NumericError(fmt::format(
          "A score of query {} was not finite in pass {} of training on all labels: use a lower "
          "learning_rate.",
          query, epoch));
    }
    const std::int64_t taken = std::min(pairs.count(), kOfflinePairs);
    RngStream draws(key_, epoch, static_cast<std::uint32_t>(query));
    for (std::int64_t pair = 0; pair < taken; ++pair) {
      const std::int64_t number =
          pairs.count() <= kOfflinePairs
              ? pair
              : static_cast<std::int64_t>(draws.uniform() * static_cast<double>(pairs.count()));
      const PreferencePair drawn = pairs.at(number);
      const auto winner = static_cast<std::size_t>(drawn.winner);
      const auto loser = static_cast<std::size_t>(drawn.loser);
      const double weight = sigmoid(double{scores_[loser]} - double{scores_[winner]});
      weights_[winner] -= weight;
      weights_[loser] += weight;
    }
    model_.add_gradient(context_, theta, docs, weights_, gradient);
    return taken;
  }

 private:
  const ScoreModel& model_;
  const LabelledQueries& labels_;
  PhiloxKey key_;
  ExecutionContext context_;  // one thread
  std::vector<GradePairs> pairs_;
  std::vector<float> scores_;
  std::vector<double> weights_;
};

std::vector<float> trained(const ScoreModel& model, const RankerSettings& settings, PhiloxKey key,
                           const LabelledQueries& labels, std::vector<float> theta) {
  if (settings.trainer.optimizer != Optimizer::kAdam) {
    throw InvalidArgument(
        fmt::format("Ranker '{}' has optimizer = \"{}\", but ranknet-offline supports only \"adam\".",
                    settings.name, name_of(settings.trainer.optimizer)));
  }
  if (theta.empty()) theta.resize(model.parameters());
  return train_offline(model, labels, settings.trainer, key, std::move(theta));
}

}  // namespace

std::vector<float> train_offline(const ScoreModel& model, const LabelledQueries& labels,
                                 const TrainerSettings& settings, PhiloxKey key, std::vector<float> theta) {
  assert(std::ssize(theta) == model.parameters());
  QueryGradient query_gradient(model, labels, key);
  Adam adam(theta.size());
  std::vector<std::int64_t> order(labels.queries());
  std::vector<double> gradient(theta.size());
  double learning_rate = settings.learning_rate;
  for (std::int64_t pass = 1; pass <= settings.epochs; ++pass) {
    const auto epoch = static_cast<std::uint32_t>(pass);
    std::iota(order.begin(), order.end(), 0);
    RngStream(key, epoch, 0, 1).shuffle(std::span(order));
    std::int64_t pairs = 0;
    const auto take_step = [&] {
      if (pairs == 0) return;
      for (double& entry : gradient) entry /= static_cast<double>(pairs);
      adam.step(learning_rate, gradient, theta);
      std::fill(gradient.begin(), gradient.end(), 0.0);
      pairs = 0;
    };
    for (const std::int64_t query : order) {
      pairs += query_gradient.add(epoch, query, theta, gradient);
      if (pairs >= settings.batch) take_step();
    }
    take_step();
    learning_rate *= settings.learning_rate_decay;
  }
  return theta;
}

std::vector<float> offline_linear_theta(const LabelledQueries& labels, std::int64_t features,
                                        std::int64_t fold) {
  const RankerSettings settings =
      RankerSettings::defaults(RankerKind::kRankNetOffline, ProtocolName::kPaper);
  const PhiloxKey key =
      make_key({.seed = 0, .purpose = Purpose::kBatch, .fold = static_cast<std::uint64_t>(fold)});
  return train_offline(LinearModel(features), labels, settings.trainer, key, std::vector<float>(features));
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
  settings.trainer.optimizer = Optimizer::kAdam;
  settings.trainer.learning_rate = 0.03;
  settings.trainer.learning_rate_decay = 0.85;
}

}  // namespace olrank
