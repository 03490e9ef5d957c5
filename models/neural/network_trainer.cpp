#include "models/neural/network_trainer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/math/normal.h"
#include "core/math/optimizer_step.h"
#include "core/online/retraining.h"
#include "core/ops/optimizer_step.h"

namespace olrank {

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

void shuffle_epoch(PhiloxKey batch_key, std::uint32_t round, std::int64_t epoch,
                   std::span<std::int32_t> order) {
  RngStream coins(batch_key, round, static_cast<std::uint32_t>(epoch), 1);
  coins.shuffle(order);
}

void check_batch_optimizer(const TrainerSettings& settings) {
  if (settings.optimizer == Optimizer::kNesterov) {
    throw InvalidArgument(
        "optimizer = \"nesterov\" needs full batches: set loss = \"sum\" or choose another optimizer.");
  }
}

namespace {

/// The training of the authors' code (docs/MATH.md, "Protocols"): each update passes over the history
/// `epochs` times in shuffled batches, on the batch's mean cross-entropy with weight decay λ/n. `adam`, or
/// plain steps with `gd`.
class MiniBatchTrainer : public NetworkTrainer {
 public:
  explicit MiniBatchTrainer(const TrainerSpec& spec)
      : spec_(spec),
        gradient_(spec.model.parameters()),
        first_moment_(gradient_.size()),
        second_moment_(gradient_.size()),
        position_(gradient_.size()) {
    check_batch_optimizer(spec.settings);
  }

  std::optional<double> train(ExecutionContext& context, const TrainingTask& task,
                              std::span<float> theta) override {
    before_.assign(theta.begin(), theta.end());
    term_noise_.clear();
    if (task.terms.data() != task.history.terms().data()) {
      // The noise on a member's labels, spread evenly over the repetitions of a pair.
      for (std::size_t t = 0; t < task.terms.size(); ++t) {
        const PairTerm& plain = task.history.terms()[t];
        term_noise_.push_back(noise_per_pair(task.terms[t].labels, plain.labels, plain.weight));
      }
    }
    const double rate = spec_.settings.learning_rate;
    for (int repeats = 0;; ++repeats) {
      const auto failure = pass_epochs(context, task, repeated_rate(rate, repeats), theta);
      if (!failure) return std::nullopt;
      std::copy(before_.begin(), before_.end(), theta.begin());
      // The loss of the first batch is that of where the training starts, whatever the step.
      if (failure->step == 1 || repeats == kMostRepeats)
        throw_diverged({task.round, failure->step, failure->loss, rate, std::nullopt});
    }
  }
  /// Batches go over every pair, so there is nothing to continue on a sample.
  std::optional<double> replay(ExecutionContext&, const ReplayTask&, std::span<float>) override {
    return std::nullopt;
  }

 private:
  void gather(const TrainingTask& task, std::span<const std::int32_t> batch) {
    const auto observations = task.history.observations();
    docs_.start(task.history);
    terms_.clear();
    for (const std::int32_t number : batch) {
      const auto& seen = observations[number];
      const PairTerm& term = task.history.terms()[seen.term];
      const double weight = task.weigh_by_ndcg ? changes_[number] : 1.0;
      const double noise = term_noise_.empty() ? 0.0 : term_noise_[seen.term];
      terms_.push_back({docs_.place_of(term.first), docs_.place_of(term.second), weight,
                        noisy_pair_labels(weight, seen.first_wins, noise)});
    }
  }
  /// The first batch whose loss has exploded.
  struct Failure {
    std::int64_t step = 0;  // from 1
    double loss = 0.0;
  };
  /// One training from where the latest began.
  std::optional<Failure> pass_epochs(ExecutionContext& context, const TrainingTask& task, double step,
                                     std::span<float> theta) {
    const auto observed = std::ssize(task.history.observations());
    std::copy(before_.begin(), before_.end(), theta.begin());
    std::copy(before_.begin(), before_.end(), position_.begin());
    std::fill(first_moment_.begin(), first_moment_.end(), 0.0);
    std::fill(second_moment_.begin(), second_moment_.end(), 0.0);
    order_.resize(observed);
    std::iota(order_.begin(), order_.end(), 0);
    const double decay = spec_.lambda / static_cast<double>(observed);
    std::int64_t number = 0;
    for (std::int64_t epoch = 0; epoch < spec_.settings.epochs; ++epoch) {
      shuffle_epoch(spec_.batch_key, task.round, epoch, order_);
      for (std::int64_t begin = 0; begin < observed; begin += spec_.settings.batch) {
        const std::int64_t count = std::min(spec_.settings.batch, observed - begin);
        if (task.weigh_by_ndcg) {
          scores_.resize(task.history.docs());
          spec_.model.score(context, theta, task.history.features(), scores_);
          if (!all_finite(scores_)) return Failure{number + 1, std::nan("")};
          ndcg_changes(task.history.pair_lists(), scores_, changes_);
        }
        gather(task, std::span(order_).subspan(begin, count));
        const PairObjective objective{1.0 / static_cast<double>(count), 0.0, {}};
        const double loss =
            spec_.model.find_loss_gradient(context, theta, docs_.features(), terms_, objective, gradient_);
        ++number;
        if (batch_loss_has_exploded(loss)) return Failure{number, loss};
        move(number, step, decay, theta);
      }
    }
    return std::nullopt;
  }
  void move(std::int64_t number, double step, double decay, std::span<float> theta) {
    if (spec_.settings.optimizer == Optimizer::kAdam) {
      adam_step(number, step, decay, gradient_, {first_moment_, second_moment_}, position_, theta);
      return;
    }
    decayed_step(step, decay, gradient_, position_, theta);
  }

  TrainerSpec spec_;
  std::vector<double> gradient_;
  std::vector<double> first_moment_;
  std::vector<double> second_moment_;
  std::vector<double> position_;  // θ in double
  std::vector<float> before_;
  std::vector<std::int32_t> order_;
  std::vector<float> scores_;
  std::vector<double> changes_;
  std::vector<double> term_noise_;  // of perturbed labels, per observation

  // The batch: its distinct documents and terms.
  GatheredDocs docs_;
  std::vector<PairTerm> terms_;
};

}  // namespace

std::unique_ptr<NetworkTrainer> make_network_trainer(const TrainerSpec& spec) {
  return spec.settings.loss == LossForm::kSum ? make_full_batch_trainer(spec)
                                              : make_mini_batch_trainer(spec);
}

std::unique_ptr<NetworkTrainer> make_mini_batch_trainer(const TrainerSpec& spec) {
  return std::make_unique<MiniBatchTrainer>(spec);
}

}  // namespace olrank
