#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/network_spec.h"
#include "core/io/state_archive.h"
#include "core/ops/optimizer_step.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/recorded_work.h"
#include "cuda/engine/resident_history.h"
#include "cuda/ops/largest_curvature.h"
#include "cuda/ops/optimizer_step.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/persistent_training.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Full-batch training of N networks side by side, on the whole history or a sample of it;
/// models/neural/full_batch_trainer.h has the mathematics. The steps of all members are one kernel, or a
/// graph with a stream for each member that is recorded once per size of the pairs and replayed without the
/// host.
class StackedTrainer : public ResidentTrainer {
 public:
  /// The spec's spans are read now only. `theta` [members × p] is trained, in the stream of `products`,
  /// which must outlive this object. Throws InvalidArgument if the spec demands one kernel where that is
  /// impossible.
  StackedTrainer(const DeviceNetworkSpec& spec, float* theta, Products& products);

  /// Waits only if curvatures are stale.
  void train(const ResidentHistory& history) override;
  bool has_failed(const Outcome& outcome, double pairs, int repeats) const override;
  bool can_repeat(const Outcome& outcome, int repeats) const override;
  void repeat(const ResidentHistory& history, std::int64_t member, int repeats) override;
  Divergence find_divergence(const ResidentHistory& history) override;
  const double* outcome() const override { return outcome_.data(); }
  bool has_steps() const override { return true; }
  std::int64_t bytes() const override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  /// Members next to each other.
  struct Members {
    std::int64_t first = 0;
    std::int64_t count = 1;
  };
  /// All members' steps, for the latest size of the whole history or of its samples.
  struct Recordings {
    ResidentHistory::Bucket bucket;
    std::int64_t moves = 0;  // of the pairs' arrays
    RecordedWork steps;
    bool trained = false;

    void forget();
  };

  void make_room(const ResidentHistory& history);
  void find_steps(const ResidentHistory& history, Members members, int repeats);
  /// Finds a member's κ for the pairs that it trains on.
  void find_curvature(const ResidentHistory& history, std::int64_t member, CurvatureState* state);
  /// A repeat on a sample finds the sample's own κ; later rounds go on with that of the history.
  bool uses_curvature_of_sample(int repeats) const;
  DeviceArray<CurvatureState>& curvatures_of(int repeats);
  double curvature_growth(const ResidentHistory& history, int repeats) const;
  void start(const ResidentHistory& history);
  void start_steps(const ResidentHistory& history);
  void descend(Products& products, const ResidentHistory& history, Members members);
  void descend_by_kernels(Products& products, const ResidentHistory& history, Members members);
  void descend_in_one_kernel(Stream stream, const ResidentHistory& history, Members members);
  StackedObjective objective(Members members) const;
  PersistentWorkspace persistent_workspace();
  /// Keeps θ as the reference of later samples, with the gradient of the data there.
  void note_reference(Products& products, const ResidentHistory& history, Members members);
  /// Adds the round's own pairs to the gradient at the reference, and finds the sample's linear term.
  void correct_sample(const ResidentHistory& history);
  /// gradient = that of the data at the reference.
  void find_reference_gradient(Products& products, const PairHistoryView& pairs, Members members,
                               double* gradient);
  void undo();
  void move(Stream stream, Members members, std::int64_t number);
  bool replays() const { return reference_.size() > 0; }
  Optimizer optimizer() const {
    return on_sample_ ? optimizer_of_replay(spec_.training.optimizer) : spec_.training.optimizer;
  }
  bool by_curvature() const { return spec_.training.optimizer != Optimizer::kAdam; }
  Recordings& recordings() { return on_sample_ ? of_sample_ : of_history_; }
  bool keeps_gradient() const { return spec_.training.optimizer != Optimizer::kGradientDescent; }

  NetworkStack stack(Members members) const;
  TrainingWorkspace workspace(Members members);
  PairHistoryView view(const ResidentHistory& history, Members members);
  OptimizerState optimizer_state(Members members);
  double rate() const;

  DeviceNetworkSpec spec_;
  float* theta_;
  Products& products_;
  Stream stream_;
  std::int64_t parameters_;
  bool in_one_kernel_;
  DeviceArray<float> centre_;     // θ₀
  DeviceArray<float> before_;     // θ before the latest training
  DeviceArray<double> outcome_;   // [kOutcomes × members]
  DeviceArray<double> gradient_;  // kept if steps need all of it; else a step is taken as it is computed
  DeviceArray<double> position_;  // of optimizers with moments, like the next two
  DeviceArray<double> first_moment_;
  DeviceArray<double> second_moment_;
  DeviceArray<StepRates> step_rates_;              // of Adam's J steps
  DeviceArray<double> first_eigenvector_;          // the start of the first power iteration
  DeviceArray<double> eigenvectors_;               // the result of each member's latest one; zeros before
  DeviceArray<CurvatureState> curvatures_;         // of the whole history
  DeviceArray<CurvatureState> sample_curvatures_;  // of the latest sample, found by repeats
  DeviceArray<PhiloxKey> noise_keys_;
  DeviceArray<std::uint32_t> noise_round_;
  DeviceArray<float> reference_;            // θ after the latest training on the whole history
  DeviceArray<double> reference_gradient_;  // of the data there, of the history as it is now
  DeviceArray<double> linear_;              // h of a sample's objective

  // Arrays that grow with the pairs.
  GrowingArray<float> rows_;
  GrowingArray<float> scores_;
  GrowingArray<float> partial_;
  GrowingArray<double> losses_;
  GrowingArray<double> labels_;
  GrowingArray<double> weights_;
  GrowingArray<double> own_labels_;  // of a sample, like the next one
  GrowingArray<double> own_weights_;
  GrowingArray<double> changes_;
  GrowingArray<double> curvature_work_;
  GrowingArray<std::uint8_t> gates_;  // of the one kernel, like the next two
  GrowingArray<double> slopes_;
  TrainingSizes sizes_;

  Recordings of_history_;
  Recordings of_sample_;
  MemberStreams member_streams_;

  // These tell of the latest training.
  bool on_sample_ = false;
  std::int64_t step_count_ = 0;

  std::int64_t curvature_pairs_ = 0;  // n when the curvatures were found
  std::int64_t trainings_ = 0;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
