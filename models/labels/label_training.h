#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/state_archive.h"
#include "core/metrics/evaluator.h"
#include "core/online/trial_keys.h"
#include "models/labels/label_solver.h"

namespace olrank {

/// The parts that a model is fitted to and chosen by, normalised.
struct LabelData {
  const Dataset& train;
  const Dataset* vali = nullptr;
  int most_grade = 4;  // of all parts
};

/// The metrics that training reports, by the rules of the settings.
MetricOptions label_metrics(const LabelSettings& settings);

/// Throws DataError where in every query all documents have one grade.
void require_order(const LabelledQueries& labels);

/// Fits one model to labels: passes of the solver, an evaluation on the validation part after each, and the
/// best model by it where `patience` is set. Everything follows from settings, data and keys; the number of
/// threads changes no bit.
class LabelTraining {
 public:
  struct Point {
    std::int64_t epoch = 0;
    std::optional<double> loss;       // LabelSolver::advance(); none before the first pass
    std::optional<double> vali_loss;  // mean loss on the validation part, without penalty
    MetricReport vali;                // where there is a validation part
  };

  /// `first_theta` is where training starts; empty: what the model draws, or zeros of a linear one. Throws
  /// as require_order() does, and InvalidArgument for settings that exclude each other or ask for a
  /// validation part that is not there.
  LabelTraining(const LabelSettings& settings, const LabelData& data, const TrialKeys& keys,
                std::vector<float> first_theta, int threads);

  /// Before any pass: epoch 0.
  Point evaluate_first();
  /// One more pass.
  Point advance();
  bool finished() const;

  const ScoreModel& model() const { return *model_; }
  const MetricOptions& metric_options() const { return evaluator_.options(); }
  /// The best by validation where `patience` is set, else the latest.
  std::span<const float> theta() const;
  std::int64_t epoch() const { return epoch_; }
  /// The pass that theta() is of.
  std::int64_t theta_epoch() const { return settings_.patience > 0 ? best_epoch_ : epoch_; }
  bool converged() const { return solver_->converged(); }
  /// Mean loss + penalty on the training part, at theta().
  double final_objective();
  struct Evaluation {
    double loss = 0.0;  // mean, without penalty
    MetricReport metrics;
  };
  Evaluation evaluate(const Dataset& data);

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  Point point(std::optional<double> loss, std::span<const float> theta);
  /// The mean loss on the data; leaves their scores in scores_.
  double score(const Dataset& data, std::span<const float> theta);

  LabelSettings settings_;
  const Dataset* vali_;
  ListLossForm form_;
  ExecutionContext context_;
  LabelledQueries labels_;
  std::unique_ptr<ScoreModel> model_;
  std::unique_ptr<LabelObjective> objective_;
  std::unique_ptr<LabelSolver> solver_;
  Evaluator evaluator_;
  std::vector<float> scores_;
  std::vector<double> slopes_;

  std::int64_t epoch_ = 0;
  std::vector<float> best_theta_;
  double best_ndcg_ = -1.0;
  std::int64_t best_epoch_ = 0;
};

}  // namespace olrank
