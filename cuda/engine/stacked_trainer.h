#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/network_spec.h"
#include "core/io/state_archive.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/member_streams.h"
#include "cuda/engine/recorded_work.h"
#include "cuda/engine/resident_trainer.h"
#include "cuda/ops/largest_curvature.h"
#include "cuda/ops/optimizer_step.h"
#include "cuda/ops/pair_training.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Full-batch training of N networks side by side; models/neural/full_batch_trainer.h has the mathematics.
/// The J steps of all members are a graph that is recorded once per size of the history and replayed
/// without the host.
class StackedTrainer : public ResidentTrainer {
 public:
  /// The spec's spans are read now only. `theta` [members × p] is trained, in the stream of `products`,
  /// which must outlive this object.
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
  /// All members' steps under one schedule, for one size of the history.
  struct Recorded {
    RecordedWork work;
    Event begin;
    Event end;
    bool timed = false;
  };
  /// The ways to train members side by side.
  static constexpr std::array kSchedules = {MemberSchedule::kBatched, MemberSchedule::kStreams};

  void make_room(const ResidentHistory& history);
  void find_steps(Members members, double rate);
  void find_curvature(const ResidentHistory& history, std::int64_t member);
  void start(const ResidentHistory& history);
  std::size_t next_schedule() const;
  void descend_all(const ResidentHistory& history, MemberSchedule schedule);
  void descend(Products& products, const ResidentHistory& history, Members members);
  void undo();
  void move(Stream stream, Members members, std::int64_t number);
  bool stops() const { return spec_.training.stop_gradient_norm > 0.0; }
  bool keeps_gradient() const { return stops() || spec_.training.optimizer != Optimizer::kGradientDescent; }

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
  DeviceArray<float> centre_;     // θ₀
  DeviceArray<float> before_;     // θ before the latest training
  DeviceArray<double> outcome_;   // [kOutcomes × members]
  DeviceArray<double> steps_;     // σ_t of each member; 0 once it has stopped
  DeviceArray<double> gradient_;  // kept if steps need all of it; else a step is taken as it is computed
  DeviceArray<double> position_;  // of optimizers with moments, like the next two
  DeviceArray<double> first_moment_;
  DeviceArray<double> second_moment_;
  DeviceArray<StepRates> step_rates_;      // of Adam's J steps
  DeviceArray<double> first_eigenvector_;  // the start of the first power iteration
  DeviceArray<double> eigenvectors_;       // the result of each member's latest one; zeros before
  DeviceArray<CurvatureState> curvatures_;
  DeviceArray<PhiloxKey> noise_keys_;
  DeviceArray<std::uint32_t> round_;
  DeviceArray<std::int64_t> observed_;

  // Arrays that grow with the history.
  GrowingArray<float> rows_;
  GrowingArray<float> scores_;
  GrowingArray<float> partial_;
  GrowingArray<double> losses_;
  GrowingArray<double> labels_;
  GrowingArray<double> weights_;
  GrowingArray<double> changes_;
  GrowingArray<double> curvature_work_;
  TrainingSizes sizes_;

  // Graphs for the latest size of the history.
  ResidentHistory::Bucket bucket_;
  std::int64_t history_moves_ = 0;
  std::array<Recorded, kSchedules.size()> recorded_;
  std::int64_t trained_in_bucket_ = 0;
  MemberStreams member_streams_;

  std::int64_t curvature_pairs_ = 0;  // n when the curvatures were found
  std::int64_t trainings_ = 0;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
