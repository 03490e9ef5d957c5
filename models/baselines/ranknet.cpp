#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/feedback/preference_pairs.h"
#include "core/math/pair_loss.h"
#include "core/metrics/list_metrics.h"
#include "core/ops/list_loss.h"
#include "core/ops/optimizer_step.h"
#include "core/throw_error.h"
#include "models/baselines/baselines.h"
#include "models/labels/label_objective.h"
#include "models/labels/label_solver.h"
#include "models/linear/linear_belief.h"
#include "models/neural/ranker_network.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {
namespace {

double exploration_of(const RankerSettings& settings) {
  if (settings.bandit.exploration == SimpleExploration::kGreedy) return 0.0;
  const double epsilon = settings.bandit.epsilon;
  if (epsilon > 0.0 && epsilon <= 1.0) return epsilon;
  throw_error<InvalidArgument>(
      "Ranker '{}' has exploration = \"epsilon\", so epsilon must be above 0 and at most 1, not {}: set "
      "--epsilon 0.1, or exploration = \"greedy\".",
      settings.name, epsilon);
}

/// RankNet on clicks: Burges et al., "Learning to rank using gradient descent", ICML 2005. One step of
/// stochastic gradient descent on the pairs of each round, θ ← θ + η_t Σ σ(−z)(∇f(x_w) − ∇f(x_l)) with
/// z = f(x_w) − f(x_l). There is no regulariser: a round's pairs are only a sample of the loss, and
/// the prior term belongs to methods that keep the whole history. Shows greedy or ε-greedy lists.
class RankNetRanker : public ScoreModelRanker {
 public:
  RankNetRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                std::vector<float> first_theta)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
        feedback_(settings.feedback),
        epsilon_(exploration_of(settings)),
        list_key_(keys.key(Purpose::kList)),
        batch_key_(keys.key(Purpose::kBatch)) {}

  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    check(feedback, context.execution.scratch());
    preference_pairs(feedback_, feedback.shown, feedback.clicks, RngStream(batch_key_, feedback.round),
                     pairs_);
    loss_pairs(feedback_, feedback, batch_key_, pairs_, loss_);
    if (loss_.pairs.empty()) {
      end_round();
      return {};
    }
    const auto scores = scores_of(context, feedback.query, feedback.round);
    const auto measured = context.clock.measure("train");
    Scratch& scratch = context.execution.scratch();
    const Scratch::Frame frame(scratch);
    const auto weights = scratch.take<double>(scores.size());
    std::fill(weights.begin(), weights.end(), 0.0);
    for (const PreferencePair& pair : loss_.pairs) {
      const auto winner = static_cast<std::size_t>(pair.winner);
      const auto loser = static_cast<std::size_t>(pair.loser);
      const double weight = sigmoid(scores[loser] - scores[winner]);
      weights[winner] += weight;
      weights[loser] -= weight;
    }
    step_ = {step()};
    follow_gradient(context.execution, feedback.query, weights);
    end_round();
    return {pairs_, step_};
  }

 private:
  ScoreLists lists() const override {
    return [epsilon = epsilon_, key = list_key_](
               ExecutionContext& context, const RankingTask& task, std::span<const double> scores,
               std::vector<std::int32_t>& list, std::vector<double>& propensity) {
      Scratch& scratch = context.scratch();
      const Scratch::Frame frame(scratch);
      const auto best_first = scratch.take<std::int32_t>(scores.size());
      order_by_score(scores, best_first, scratch);
      list.assign(best_first.begin(), best_first.end());
      propensity.assign(scores.size(), 1.0);
      if (epsilon > 0.0)
        epsilon_greedy_list(best_first, epsilon, key, task.round, scratch, list, propensity);
    };
  }

  PairSettings feedback_;
  double epsilon_;  // 0: greedy
  PhiloxKey list_key_;
  PhiloxKey batch_key_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_;
  std::array<double, 1> step_{};
};

std::vector<float> trained(const ScoreModel& model, const RankerSettings& settings, PhiloxKey key,
                           const LabelledQueries& labels, std::vector<float> theta) {
  if (settings.trainer.optimizer != Optimizer::kAdam) {
    throw_error<InvalidArgument>(
        "Ranker '{}' has optimizer = \"{}\", but ranknet-offline supports only \"adam\".", settings.name,
        name_of(settings.trainer.optimizer));
  }
  if (theta.empty()) theta.resize(model.parameters());
  return train_offline(model, labels, settings, key, std::move(theta));
}

/// A ranker that is trained on true grades when it is made and learns nothing from clicks: an upper bound
/// for the model. Round 0 of its curve is the trained model.
class RankNetOffline : public ScoreModelRanker {
 public:
  RankNetOffline(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                 std::vector<float> first_theta, const LabelledQueries& labels)
      : RankNetOffline(trained(*model, settings, keys.key(Purpose::kBatch), labels, std::move(first_theta)),
                       std::move(model), settings, keys) {}

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const auto scores = scores_of(context, query, round);
    const auto measured = context.clock.measure("rank");
    list_.resize(scores.size());
    order_by_score(scores, list_, context.execution.scratch());
    return {list_, std::nullopt};
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    check(feedback, context.execution.scratch());
    end_round();
    return {};
  }

 private:
  // Takes the model by reference, so that it still exists during training.
  RankNetOffline(std::vector<float> theta, std::unique_ptr<ScoreModel>&& model,
                 const RankerSettings& settings, TrialKeys keys)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(theta)) {}
};

/// LambdaRank fitted to the true grades of all queries asked so far: the skyline of rankers that learn from
/// clicks. After each round it takes `steps` steps of Adam, each on the mean loss of `batch` rounds drawn
/// from those so far, regardless of the clicks, and shows lists by score. There is no regulariser. With
/// restart = "first" each round trains a new model: the skyline of Jia and Wang (WWW 2022, section 5.1).
class LambdaRankLabels : public ScoreModelRanker {
 public:
  /// `labels` has to outlive the ranker.
  LambdaRankLabels(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                   std::vector<float> first_theta, const LabelledQueries& labels)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
        labels_(labels),
        objective_(score_model(), labels, {.loss = ListLoss::kLambdaRank}, 1),
        steps_a_round_(settings.trainer.steps),
        batch_(settings.trainer.batch),
        position_(theta().begin(), theta().end()),
        first_(position_.size()),
        second_(position_.size()),
        gradient_(position_.size()) {
    if (settings.trainer.restart == Restart::kFirst) first_theta_.assign(theta().begin(), theta().end());
  }

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const auto scores = scores_of(context, query, round);
    const auto measured = context.clock.measure("rank");
    list_.resize(scores.size());
    order_by_score(scores, list_, context.execution.scratch());
    propensity_.assign(scores.size(), 1.0);
    return shown_list();
  }

  /// Uses only the query of the feedback. Reports no pairs, because none came from clicks.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    check(feedback, context.execution.scratch());
    grades_of(labels_, feedback.query, name());
    const auto measured = context.clock.measure("train");
    asked_.push_back(feedback.query.query);
    std::vector<float> theta(this->theta().begin(), this->theta().end());
    if (!first_theta_.empty()) {
      theta = first_theta_;
      position_.assign(theta.begin(), theta.end());
      std::fill(first_.begin(), first_.end(), 0.0);
      std::fill(second_.begin(), second_.end(), 0.0);
      steps_ = 0;
    }
    // Without the user, whose clicks change nothing.
    const PhiloxKey key = make_key({.seed = keys().seed, .purpose = Purpose::kBatch, .fold = keys().fold});
    for (std::int64_t step = 0; step < steps_a_round_; ++step) {
      RngStream draws(key, feedback.round, static_cast<std::uint32_t>(step));
      drawn_.clear();
      for (std::int64_t number = 0; number < std::min(batch_, std::ssize(asked_)); ++number)
        drawn_.push_back(asked_[draws.index_of(std::ssize(asked_))]);
      objective_.mean(theta, drawn_, gradient_);
      adam_step(++steps_, this->step(), 0.0, gradient_, {first_, second_}, position_, theta);
    }
    set_theta(theta);
    end_round();
    return {};
  }
  void fields(StateFields& state) override {
    ScoreModelRanker::fields(state);
    state.any("asked", asked_);
    state.numbers("steps", steps_);
    state.sized("position", position_);
    state.sized("first", first_);
    state.sized("second", second_);
  }

 private:
  const LabelledQueries& labels_;
  LabelObjective objective_;
  std::int64_t steps_a_round_;
  std::int64_t batch_;
  std::vector<float> first_theta_;  // where each round starts; empty: at the model of the round before

  std::vector<std::int64_t> asked_;  // the query of each round
  std::int64_t steps_ = 0;
  std::vector<double> position_;
  std::vector<double> first_;
  std::vector<double> second_;

  std::vector<std::int64_t> drawn_;
  std::vector<double> gradient_;
};

}  // namespace

std::unique_ptr<OnlineRanker> make_ranknet(const RankerRequest& request) {
  return make_on_first_model<RankNetRanker>(request);
}

void set_ranknet_defaults(RankerSettings& settings, const DefaultsContext& context) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.1;
  if (context.protocol == ProtocolName::kPaper) settings.trainer.learning_rate = 0.01;
  if (context.protocol != ProtocolName::kRecommended) return;
  // Chosen by their worst case: docs/evidence/DEFAULTS.md.
  settings.feedback.pairs = PairRule::kMatched;
  settings.trainer.learning_rate = 0.003;
}

void epsilon_greedy_list(std::span<const std::int32_t> best_first, double epsilon, PhiloxKey key,
                         std::uint32_t round, Scratch& scratch, std::span<std::int32_t> list,
                         std::span<double> propensity) {
  assert(list.size() == best_first.size());
  const std::size_t docs = best_first.size();
  const Scratch::Frame frame(scratch);
  // The remaining documents are at the front of `pool`, in no order; `slot` is the position of each.
  const auto pool = scratch.take<std::int32_t>(docs);
  const auto slot = scratch.take<std::size_t>(docs);
  std::iota(pool.begin(), pool.end(), 0);
  std::iota(slot.begin(), slot.end(), std::size_t{0});
  std::size_t remaining = docs;
  std::size_t best = 0;  // in best_first; moves past what is placed
  for (std::size_t rank = 0; rank < docs; ++rank) {
    RngStream coins(key, round, 0, static_cast<std::uint32_t>(rank));
    while (slot[best_first[best]] >= remaining) ++best;
    std::int32_t doc = best_first[best];
    if (coins.uniform() < epsilon) doc = pool[coins.index(static_cast<std::uint32_t>(remaining))];
    list[rank] = doc;
    propensity[rank] =
        epsilon / static_cast<double>(remaining) + (doc == best_first[best] ? 1.0 - epsilon : 0.0);
    // Replaced by the last one of the pool, which shrinks by one.
    --remaining;
    const std::size_t hole = slot[doc];
    const std::int32_t last = pool[remaining];
    pool[hole] = last;
    slot[last] = hole;
    pool[remaining] = doc;
    slot[doc] = remaining;
  }
}

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

QueryGrades grades_of(const LabelledQueries& labels, const QueryDocs& query, const std::string& ranker) {
  if (query.query >= 0 && query.query < labels.queries()) {
    const QueryGrades grades = labels.grades_of(query.query);
    if (std::ssize(grades.of_doc) == query.docs()) return grades;
  }
  throw_error<InvalidArgument>(
      "Ranker '{}' learns from true grades but has none for query {} with {} documents: train it on the "
      "training part that it was made for.",
      ranker, query.query, query.docs());
}

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request) {
  return make_on_first_model<LambdaRankLabels>(request, *request.dependencies.labels);
}

void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext&) {
  settings.trainer.learning_rate = 0.01;
  settings.trainer.steps = 2;
  settings.trainer.batch = 16;
}

FirstModel first_model(const RankerRequest& request) {
  const NetworkSettings& settings = request.settings.network;
  const auto given = request.dependencies.first_thetas;
  const bool linear = settings.network == NetworkForm::kLinear;
  FirstModel first;
  if (!given.empty()) first.theta = given.front();
  if (linear) {
    first.model = std::make_unique<LinearModel>(request.features);
    return first;
  }
  auto model = make_tangent_model(settings, request.features);
  if (given.empty()) first.theta = model->first_parameters(request.keys.key(Purpose::kInitialisation));
  first.model = std::move(model);
  return first;
}

}  // namespace olrank
