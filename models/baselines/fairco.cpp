#include "models/baselines/baselines.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/fair/exposure.h"
#include "core/metrics/list_metrics.h"
#include "core/ops/blas.h"
#include "core/ops/optimizer_step.h"
#include "core/throw_error.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {
namespace {

/// FairCo: Morik, Singh, Hong and Joachims, "Controlling fairness and bias in dynamic learning-to-rank",
/// SIGIR 2020. It estimates relevance by inverse propensity scoring, R̂ = argmin Σ_t Σ_{d shown} R̂(d)² +
/// (c/P(rank)) (c − 2R̂(d)) + λ‖θ‖², which for clicks c of 0 and 1 is the square loss towards c/P(rank), and
/// ranks by R̂(d) + fair_control(). A linear R̂ is the exact solution after each round; a network takes
/// `steps` steps of Adam on `batch` shown documents drawn from all so far.
class FairCo : public ScoreModelRanker {
 public:
  FairCo(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
         std::vector<float> first_theta)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
        gain_(settings.fair.fair_gain),
        lambda_(settings.posterior.lambda),
        linear_(settings.network.network == NetworkForm::kLinear),
        features_(score_model().features()),
        steps_a_round_(settings.trainer.steps),
        batch_(settings.trainer.batch) {
    if (score_model().reads_lists()) {
      throw_error<InvalidArgument>(
          "Ranker '{}' estimates each document's relevance by itself, but module '{}' reads whole lists: "
          "choose another module.",
          settings.name, settings.network.module);
    }
    if (linear_) {
      matrix_.assign(features_ * features_, 0.0);
      for (std::int64_t i = 0; i < features_; ++i) matrix_[i * features_ + i] = lambda_;
      target_.assign(features_, 0.0);
      row_.resize(features_);
    } else {
      position_.assign(theta().begin(), theta().end());
      first_.resize(position_.size());
      second_.resize(position_.size());
      gradient_.resize(position_.size());
    }
  }

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    RankedList list = ScoreModelRanker::rank(context, query, round);
    if (query.fair != nullptr) list.fairness = ListFairness{};
    return list;
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    check(feedback, context.execution.scratch());
    if (feedback.query.fair == nullptr) {
      throw_error<InvalidArgument>(
          "Ranker '{}' needs the probabilities with which ranks are examined: describe the groups in "
          "[groups].",
          name());
    }
    const auto measured = context.clock.measure("train");
    const std::vector<double>& examination = feedback.query.fair->rule->examination;
    for (std::size_t rank = 0; rank < feedback.shown.size(); ++rank) {
      // A rank that is never examined has no clicks to learn from.
      if (rank >= examination.size() || examination[rank] <= 0.0) continue;
      const double target = feedback.clicks[rank] != 0 ? 1.0 / examination[rank] : 0.0;
      remember(feedback.query, feedback.shown[rank], target);
    }
    if (linear_) {
      solve();
    } else {
      take_steps(context.execution, feedback.round);
    }
    end_round();
    return {};
  }
  void fields(StateFields& state) override {
    ScoreModelRanker::fields(state);
    if (linear_) {
      state.sized("fairco.matrix", matrix_);
      state.sized("fairco.target", target_);
      return;
    }
    state.any("fairco.doc_numbers", doc_numbers_);
    state.any("fairco.docs", docs_);
    state.any("fairco.rows", shown_rows_);
    state.any("fairco.targets", shown_targets_);
    state.numbers("steps", steps_);
    state.sized("position", position_);
    state.sized("first", first_);
    state.sized("second", second_);
    if (!state.reads()) return;
    const auto distinct = std::ssize(doc_numbers_);
    const bool fits = std::ssize(docs_) == distinct * features_ &&
                      shown_rows_.size() == shown_targets_.size() &&
                      std::all_of(shown_rows_.begin(), shown_rows_.end(),
                                  [&](std::int32_t row) { return row >= 0 && row < distinct; });
    if (!fits)
      throw IoError("The checkpoint's shown documents of fairco do not fit: play the trial again.");
    row_of_.clear();
    for (std::int64_t row = 0; row < distinct; ++row)
      row_of_[doc_numbers_[row]] = static_cast<std::int32_t>(row);
  }

 private:
  ScoreLists lists() const override {
    return
        [gain = gain_](ExecutionContext& context, const RankingTask& task, std::span<const double> scores,
                       std::vector<std::int32_t>& list, std::vector<double>& propensity) {
          const Scratch::Frame frame(context.scratch());
          const auto raised = context.scratch().take<double>(scores.size());
          for (std::size_t doc = 0; doc < raised.size(); ++doc)
            raised[doc] =
                scores[doc] + (task.fair ? fair_control(*task.fair, gain, task.fair->groups[doc]) : 0.0);
          list.resize(raised.size());
          order_by_score(raised, list, context.scratch());
          propensity.clear();  // it depends on what was shown before
        };
  }

  void remember(const QueryDocs& query, std::int32_t doc, double target) {
    const auto features = query.features.doc(doc);
    if (linear_) {
      std::copy(features.begin(), features.end(), row_.begin());
      for (std::int64_t i = 0; i < features_; ++i) {
        const double x = row_[i];
        if (x == 0.0) continue;
        target_[i] += x * target;
        double* row = matrix_.data() + i * features_;
        for (std::int64_t j = 0; j <= i; ++j) row[j] += x * row_[j];
      }
      return;
    }
    const std::int64_t number = query.number(doc);
    const auto [found, is_new] =
        row_of_.try_emplace(number, static_cast<std::int32_t>(doc_numbers_.size()));
    if (is_new) {
      doc_numbers_.push_back(number);
      docs_.insert(docs_.end(), features.begin(), features.end());
    }
    shown_rows_.push_back(found->second);
    shown_targets_.push_back(static_cast<float>(target));
  }
  void solve() {
    factor_ = matrix_;
    blas::cholesky(features_, factor_.data(), features_);
    row_ = target_;
    blas::solve_lower(blas::Transpose::kNo, features_, 1, factor_.data(), features_, row_.data(), 1);
    blas::solve_lower(blas::Transpose::kYes, features_, 1, factor_.data(), features_, row_.data(), 1);
    const std::vector<float> solution(row_.begin(), row_.end());
    set_theta(solution);
  }
  void take_steps(ExecutionContext& context, std::uint32_t round) {
    if (shown_rows_.empty()) return;
    const auto shown = std::ssize(shown_rows_);
    const std::int64_t size = std::min(batch_, shown);
    const double decay = 2.0 * lambda_ / static_cast<double>(shown);
    const PhiloxKey key = keys().key(Purpose::kBatch);
    std::vector<float> theta(this->theta().begin(), this->theta().end());
    std::vector<float> targets(size);
    batch_docs_.resize(size * features_);
    for (std::int64_t step = 0; step < steps_a_round_; ++step) {
      RngStream draws(key, round, static_cast<std::uint32_t>(step));
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t drawn = draws.index_of(shown);
        const std::int64_t row = shown_rows_[drawn];
        std::copy_n(docs_.begin() + row * features_, features_, batch_docs_.begin() + i * features_);
        targets[i] = shown_targets_[drawn];
      }
      score_model().find_score_gradient(
          context, theta, {batch_docs_.data(), size, features_},
          [&](std::span<const float> scores, std::span<double> slopes) {
            for (std::int64_t i = 0; i < size; ++i)
              slopes[i] = 2.0 * (double{scores[i]} - double{targets[i]}) / static_cast<double>(size);
          },
          gradient_);
      adam_step(++steps_, this->step(), decay, gradient_, {first_, second_}, position_, theta);
    }
    set_theta(theta);
  }

  double gain_;    // λ_c
  double lambda_;  // λ
  bool linear_;
  std::int64_t features_;
  std::int64_t steps_a_round_;
  std::int64_t batch_;

  // Linear: the normal equations.
  std::vector<double> matrix_;  // λI + Σ x xᵀ, lower triangle
  std::vector<double> target_;  // Σ x c/P
  std::vector<double> factor_;

  // Network: each shown document, by its row among the distinct ones.
  std::vector<std::int64_t> doc_numbers_;
  std::vector<float> docs_;  // [distinct × features]
  std::vector<std::int32_t> shown_rows_;
  std::vector<float> shown_targets_;
  std::unordered_map<std::int64_t, std::int32_t> row_of_;
  std::int64_t steps_ = 0;
  std::vector<double> position_;
  std::vector<double> first_;
  std::vector<double> second_;

  std::vector<float> batch_docs_;
  std::vector<double> gradient_;
  std::vector<double> row_;
};

}  // namespace

std::unique_ptr<OnlineRanker> make_fairco(const RankerRequest& request) {
  return make_on_first_model<FairCo>(request);
}

void set_fairco_defaults(RankerSettings& settings, const DefaultsContext& /*context*/) {
  settings.network.network = NetworkForm::kLinear;
  settings.network.parameterisation = Parameterisation::kStandard;
  settings.posterior.lambda = 1.0;
  settings.fair.fair = Fairness::kFairCo;
  settings.trainer.learning_rate = 0.001;
  settings.trainer.steps = 10;
  settings.trainer.batch = 64;
}

}  // namespace olrank
