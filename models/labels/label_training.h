#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/device/visible_gpus.h"
#include "core/io/state_archive.h"
#include "core/metrics/evaluator.h"
#include "core/online/online_ranker.h"
#include "models/labels/label_solver.h"

namespace olrank {

/// The parts that a model is fitted to and chosen by, normalised.
struct LabelData {
  const Dataset& train;
  const Dataset* vali = nullptr;
  int most_grade = 4;  // of all parts
  /// In place of the grades of the training part, which then count in metrics alone.
  ClickTargets* clicks = nullptr;
};

/// The GPU that a training computes on.
struct LabelDevice {
  int gpu = 0;                      // as CUDA numbers the visible ones
  std::int64_t bytes_for_docs = 0;  // of all parts; one that does not fit travels to the GPU batch by batch

  // Tests give emulated ones.
  std::function<std::unique_ptr<DeviceLists>(const DeviceListsSpec&)> make_lists = make_device_lists;
  std::function<std::optional<int>(int gpu)> libtorch_number = libtorch_number_of;
};

/// The metrics that training reports, by the rules of the settings.
MetricOptions label_metrics(const LabelSettings& settings);

/// Throws DataError where in every query all documents have one grade, or no weight.
void require_order(const LabelledQueries& labels);

/// Fits one model to labels: passes of the solver, an evaluation on the validation part after each, and the
/// best model by it where `patience` is set. Everything follows from settings, data and keys, and from
/// whether a GPU computes; the number of threads changes no bit.
class LabelTraining : public Stateful {
 public:
  struct Point {
    std::int64_t epoch = 0;
    std::optional<double> loss;       // LabelSolver::advance(); none before the first pass
    std::optional<double> vali_loss;  // mean loss on the validation part, without penalty and weights
    MetricReport vali;                // where there is a validation part
  };

  /// `first_theta` is where training starts; empty: what the model draws, or zeros of a linear one. Throws
  /// as require_order() does, and InvalidArgument for settings that exclude each other or ask for a
  /// validation part that is not there.
  LabelTraining(const LabelSettings& settings, const LabelData& data, const TrialKeys& keys,
                std::vector<float> first_theta, int threads,
                const std::optional<LabelDevice>& device = std::nullopt);

  /// Evaluates before any pass: epoch 0.
  Point evaluate_first();
  /// One more pass.
  Point advance();
  bool finished() const;

  const ScoreModel& model() const { return *model_; }
  /// Scores of the documents by theta().
  std::span<const float> score(const Dataset& data);
  bool on_gpu() const { return device_.has_value(); }
  const MetricOptions& metric_options() const { return evaluator_.options(); }
  /// The best by validation where `patience` is set, else the latest.
  std::span<const float> theta() const;
  std::int64_t epoch() const { return epoch_; }
  /// The pass that theta() is of.
  std::int64_t theta_epoch() const { return settings_.patience > 0 ? best_epoch_ : epoch_; }
  bool converged() const { return solver_->converged(); }
  /// Weighted mean loss + penalty on the training part, at theta().
  double final_objective();
  struct Evaluation {
    double loss = 0.0;  // mean, without penalty and weights
    MetricReport metrics;
  };
  Evaluation evaluate(const Dataset& data);

  void fields(StateFields& state) override;

 private:
  void refuse_sparse() const;  // where only dense documents can be trained on
  Point point(std::optional<double> loss, std::span<const float> theta);
  /// The mean loss on the data, without weights; leaves their scores in scores_.
  double score(const Dataset& data, std::span<const float> theta);
  /// The lists of a part on the device; null where the host computes.
  DeviceLists* on_device(const Dataset& data);
  std::unique_ptr<DeviceLists> make_lists(const Dataset& data);

  LabelSettings settings_;
  const Dataset* train_;
  const Dataset* vali_;
  ClickTargets* clicks_;
  std::optional<LabelDevice> device_;
  ListLossForm form_;
  ExecutionContext context_;
  LabelledQueries labels_;
  std::unique_ptr<ScoreModel> model_;
  std::unique_ptr<LabelObjective> objective_;
  std::unique_ptr<LabelSolver> solver_;
  std::map<const Dataset*, std::unique_ptr<DeviceLists>> evaluated_;  // parts on the device
  Evaluator evaluator_;
  std::vector<float> scores_;
  std::vector<double> slopes_;

  std::int64_t epoch_ = 0;
  std::vector<float> best_theta_;
  double best_ndcg_ = -1.0;
  std::int64_t best_epoch_ = 0;
};

}  // namespace olrank
