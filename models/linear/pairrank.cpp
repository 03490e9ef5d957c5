#include "models/linear/linear_belief.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/math/normal.h"
#include "core/math/pair_loss.h"
#include "core/online/retraining.h"
#include "models/posterior/row_covariance.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {
namespace {

/// Widths of a linear model: a document's gradient is its features.
class LinearWidths : public Belief {
 public:
  LinearWidths(std::int64_t features, RowCovariance covariance)
      : model_(features), covariance_(std::move(covariance)) {}

  Evidence take_evidence(Scratch& scratch, std::int64_t, std::int64_t docs) const override {
    Evidence evidence;
    evidence.scores = scratch.take<float>(docs);
    evidence.width_sq = scratch.take<double>(docs * docs);
    return evidence;
  }
  void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
             Evidence& evidence) const override {
    mean_score(context, thetas, docs, evidence.scores);
  }
  void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                  std::span<float> scores) const override {
    model_.score(context, thetas.front(), docs, scores);
  }
  bool has_widths() const override { return true; }
  void measure_widths(ExecutionContext& context, FeatureMatrix docs, Evidence& evidence) const override {
    const Scratch::Frame frame(context.scratch());
    const auto rows = context.scratch().take<double>(docs.docs * docs.features);
    std::copy_n(docs.values, rows.size(), rows.begin());
    covariance_.width_sq(context, rows, docs.docs, evidence.width_sq);
  }
  double log_det() const override { return covariance_.log_det(); }
  void observe(ExecutionContext& context, FeatureMatrix docs, const Evidence&,
               std::span<const PreferencePair> pairs) override {
    const Scratch::Frame frame(context.scratch());
    const auto rows =
        context.scratch().take<double>(pairs.size() * static_cast<std::size_t>(model_.features()));
    double* row = rows.data();  // x_winner − x_loser
    for (const auto& [winner, loser] : pairs) {
      const auto x = docs.doc(winner);
      const auto y = docs.doc(loser);
      for (std::size_t k = 0; k < x.size(); ++k) *row++ = double{x[k]} - double{y[k]};
    }
    covariance_.observe(context, rows, std::ssize(pairs));
  }
  std::shared_ptr<const Belief> freeze() const override {
    return std::make_shared<LinearWidths>(model_.features(), covariance_);
  }
  ModelTensors model(MemberThetas thetas) const override { return model_.tensors(thetas.front()); }
  std::vector<RankerFigure> figures(ExecutionContext&) const override {
    return {{"drift", covariance_.drift()}};
  }
  void fields(StateFields& state) override { covariance_.fields(state); }

 private:
  LinearModel model_;
  RowCovariance covariance_;
};

/// The votes of linear models. A linear model's mean score is its mean parameters' score.
class LinearVotes : public Belief {
 public:
  explicit LinearVotes(std::int64_t features) : model_(features) {}

  Evidence take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const override {
    return take_votes(scratch, members, docs);
  }
  void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
             Evidence& evidence) const override {
    mean_score(context, thetas, docs, evidence.scores);
    const std::size_t count = evidence.scores.size();
    for (std::size_t member = 0; member < thetas.size(); ++member)
      model_.score(context, thetas[member], docs, evidence.member_scores.subspan(member * count, count));
    float largest = 0.0F;
    for (const float score : evidence.member_scores) largest = std::max(largest, std::fabs(score));
    evidence.least_difference = rounding_of_scores(largest);
  }
  void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                  std::span<float> scores) const override {
    const Scratch::Frame frame(context.scratch());
    const auto mean = context.scratch().take<float>(thetas.front().size());
    for (std::size_t k = 0; k < mean.size(); ++k) {
      double sum = 0.0;
      for (const auto& theta : thetas) sum += double{theta[k]};
      mean[k] = static_cast<float>(sum / static_cast<double>(thetas.size()));
    }
    model_.score(context, mean, docs, scores);
  }
  std::shared_ptr<const Belief> freeze() const override {
    return std::make_shared<LinearVotes>(model_.features());
  }
  ModelTensors model(MemberThetas thetas) const override { return ensemble_tensors(model_, thetas); }

 private:
  LinearModel model_;
};

/// A linear model, or an ensemble, that is fitted to the whole history by Newton's method, after each round
/// that brought pairs or as the schedule says; between two such trainings it replays a sample. In an
/// ensemble, member n learns labels y + γ, γ ~ N(0, ν²) drawn again for the whole history whenever all of
/// it is trained on; without a schedule that is in every round, with or without pairs.
class LinearLearner : public ModelLearner {
 public:
  LinearLearner(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                const std::optional<EnsembleSpec>& ensemble)
      : settings_(settings.trainer),
        lambda_(settings.posterior.lambda),
        ensemble_(ensemble),
        history_(features, FoldedPairs::kPadding),
        schedule_(settings_.retraining()),
        replay_key_(keys.key(Purpose::kReplay)),
        thetas_(ensemble ? static_cast<std::size_t>(ensemble->members) : 1, std::vector<float>(features)) {
    const NewtonTrainer::Options options{settings_.newton_tolerance, settings_.steps,
                                         settings_.retraining().replays()};
    for (std::size_t member = 0; member < thetas_.size(); ++member) {
      members_.push_back(
          {keys.key(Purpose::kLabelNoise, member), NewtonTrainer(padded_features(features), options), {}});
    }
  }

  MemberThetas thetas() const override { return thetas_; }
  void set_thetas(std::vector<std::vector<float>> thetas) override { thetas_ = std::move(thetas); }
  void observe(const Feedback& feedback, const LossPairs& loss) override {
    assert(loss.weight == 1.0);
    history_.add(feedback.query, loss.pairs);
  }
  std::span<const double> train(ExecutionContext& context, std::uint32_t round) override {
    const TrainingExtent extent = schedule_.extent(sizes());
    if (extent == TrainingExtent::kNothing) return {};
    const double ridge = ridge_weight(settings_.loss, lambda_, history_.observed());
    std::vector<std::vector<double>> before;
    for (const Member& member : members_)
      before.emplace_back(member.trainer.theta().begin(), member.trainer.theta().end());
    try {
      if (extent == TrainingExtent::kSample && can_replay()) {
        train_on_sample(context, round, ridge);
      } else {
        train_on_history(context, round, ridge);
      }
    } catch (const NumericError&) {
      for (std::size_t number = 0; number < members_.size(); ++number)
        members_[number].trainer.restore(before[number]);
      throw;
    }
    for (std::size_t number = 0; number < members_.size(); ++number) take_parameters(number);
    return {};
  }
  bool trains_without_pairs() const override {
    return ensemble_ && settings_.retrain == Retrain::kEveryRound && history_.observed() > 0;
  }
  std::vector<RankerFigure> figures() const override {
    double gap = 0.0;
    double gradient = 0.0;
    for (const Member& member : members_) {
      gap = std::max(gap, member.last_training.optimality_gap);
      gradient = std::max(gradient, member.last_training.gradient_norm);
    }
    return {{"optimality_gap", gap}, {"gradient_norm", gradient}};
  }
  void fields(StateFields& state) override {
    if (settings_.retrain == Retrain::kGrowth) {
      auto [observed, distinct] = schedule_.latest();
      // Both are there twice, as checkpoints have them since histories could forget pairs.
      std::int64_t distinct_again = distinct, observed_again = observed;
      state.numbers("training.latest", observed, distinct, distinct_again, observed_again);
      if (state.reads()) schedule_.set_latest({observed, distinct});
    }
    if (!ensemble_) {
      members_.front().trainer.fields(state);
      history_.fields(state);
    } else {
      history_.fields(state);
      member_count(state, members_.size());
      for (Member& member : members_) {
        member.trainer.fields(state);
        member.report_fields(state);
      }
    }
    if (!state.reads()) return;
    for (std::size_t number = 0; number < members_.size(); ++number) take_parameters(number);
  }
  void figure_fields(StateFields& state) override {
    if (!ensemble_) members_.front().report_fields(state);
  }

 private:
  struct Member {
    PhiloxKey noise_key;
    NewtonTrainer trainer;
    NewtonReport last_training;

    void report_fields(StateFields& state) {
      state.numbers("training.gradient_norm", last_training.gradient_norm);
      state.numbers("training.optimality_gap", last_training.optimality_gap);
    }
  };

  /// Labels of a member's training.
  std::span<const double> labels(const Member& member, std::uint32_t round) {
    const auto wins = history_.first_wins();
    if (!ensemble_) return wins;
    const double noise = std::sqrt(ensemble_->noise_variance);
    const auto count = history_.count();
    perturbed_wins_.resize(wins.size());
    for (std::size_t pair = 0; pair < wins.size(); ++pair) {
      RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(pair));
      perturbed_wins_[pair] = noisy_labels(wins[pair], count[pair], noise, coins.normal());
    }
    return perturbed_wins_;
  }
  void train_on_history(ExecutionContext& context, std::uint32_t round, double ridge) {
    schedule_.set_latest({});  // should it fail, the next one is due
    for (Member& member : members_) {
      const FoldedPairs pairs{history_.rows().data(), history_.row_count(), history_.stride(),
                              labels(member, round).data(), history_.count().data()};
      member.last_training = member.trainer.train(context, pairs, history_.observed(), ridge);
    }
    schedule_.trained(sizes());
  }
  void train_on_sample(ExecutionContext& context, std::uint32_t round, double ridge) {
    sample_rows_.clear();
    sample_weights_.clear();
    const auto take = [&](std::int64_t row, double weight) {
      const double* values = history_.row(row);
      sample_rows_.insert(sample_rows_.end(), values, values + history_.stride());
      sample_weights_.push_back(weight);
    };
    for (const PairHistory::Observation& own : history_.latest()) take(own.row, 1.0);
    const std::int64_t earlier = history_.earlier();
    const std::int64_t draws = earlier > 0 ? settings_.replay : 0;
    for (std::int64_t draw = 0; draw < draws; ++draw) {
      take(history_.draw_earlier(replay_key_, round, static_cast<std::uint32_t>(draw)),
           static_cast<double>(earlier) / static_cast<double>(draws));
    }
    const FoldedPairs sample{sample_rows_.data(), std::ssize(sample_weights_), history_.stride(), nullptr,
                             sample_weights_.data()};
    for (Member& member : members_) {
      follow_history(member, round);
      member.last_training =
          member.trainer.replay(context, sample, settings_.replay_steps, history_.observed(), ridge);
    }
  }
  /// The latest pairs in a member's expansion of its loss.
  void follow_history(Member& member, std::uint32_t round) const {
    std::uint32_t place = 0;
    for (const PairHistory::Observation& own : history_.latest()) {
      double label = own.first_wins ? 1.0 : 0.0;
      if (ensemble_) {
        RngStream coins(member.noise_key, round, static_cast<std::uint32_t>(own.row), place++);
        label = noisy_labels(label, 1.0, std::sqrt(ensemble_->noise_variance), coins.normal());
      }
      member.trainer.take_in(history_.row(own.row), 1.0, label);
    }
  }
  RetrainingSchedule::Sizes sizes() const { return {history_.observed(), history_.row_count()}; }
  bool can_replay() const {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& member) { return member.trainer.can_replay(); });
  }
  /// θ: the trainer's parameters, rounded.
  void take_parameters(std::size_t member) {
    const auto exact = members_[member].trainer.theta();
    std::vector<float>& theta = thetas_[member];
    for (std::size_t k = 0; k < theta.size(); ++k) theta[k] = static_cast<float>(exact[k]);
  }

  TrainerSettings settings_;
  double lambda_;
  std::optional<EnsembleSpec> ensemble_;
  PairHistory history_;
  RetrainingSchedule schedule_;
  PhiloxKey replay_key_;
  std::vector<Member> members_;
  std::vector<std::vector<float>> thetas_;
  std::vector<double> perturbed_wins_;
  std::vector<double> sample_rows_;
  std::vector<double> sample_weights_;
};

}  // namespace

std::unique_ptr<OnlineRanker> make_pairrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  RowCovariance covariance(settings.posterior.covariance, request.features, settings.posterior.lambda);
  return std::make_unique<CertainOrderRanker>(
      request, std::make_unique<LinearWidths>(request.features, std::move(covariance)),
      make_linear_learner(request.features, settings, request.keys, std::nullopt));
}

void set_pairrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  settings.trainer.steps = 50;
  if (context.protocol == ProtocolName::kReference) return;
  // Chosen by their worst case, those of the paper's pairs by the first sweeps: docs/evidence/DEFAULTS.md.
  settings.posterior.lambda = 100.0;
  if (context.protocol == ProtocolName::kPaper) {
    settings.explore.alpha = 0.003;
    settings.explore.c1 = 0.0003;
    return;
  }
  settings.feedback.pairs = PairRule::kMatched;
  settings.explore.alpha = 0.1;
  settings.explore.c1 = 0.01;
  settings.explore.c2 = 0.1;
  settings.explore.delta = 0.01;
}

std::unique_ptr<OnlineRanker> make_p2linrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const EnsembleSpec ensemble{settings.posterior.members, settings.posterior.noise_variance};
  return std::make_unique<CertainOrderRanker>(
      request, std::make_unique<LinearVotes>(request.features),
      make_linear_learner(request.features, settings, request.keys, ensemble));
}

void set_p2linrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  settings.trainer.steps = 50;
  if (context.protocol == ProtocolName::kReference) return;
  // Chosen by their worst case: docs/evidence/DEFAULTS.md.
  settings.posterior.noise_variance = 0.003;
  settings.posterior.lambda = 100.0;
  if (context.protocol == ProtocolName::kRecommended) settings.feedback.pairs = PairRule::kMatched;
}

std::unique_ptr<ModelLearner> make_linear_learner(std::int64_t features, const RankerSettings& settings,
                                                  const TrialKeys& keys,
                                                  const std::optional<EnsembleSpec>& ensemble) {
  return std::make_unique<LinearLearner>(features, settings, keys, ensemble);
}

}  // namespace olrank
