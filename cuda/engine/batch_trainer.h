#pragma once

#include <cstdint>
#include <vector>

#include "core/device/network_spec.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/recorded_work.h"
#include "cuda/engine/resident_history.h"
#include "cuda/ops/mini_batch.h"
#include "cuda/ops/optimizer_step.h"
#include "cuda/ops/pair_training.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The sizes that fit batches of `batch` pairs, and the last, smaller one, of `observed` > 0 pairs.
TrainingSizes batch_sizes(const NetworkShape& shape, std::int64_t batch, std::int64_t observed);

/// Training by shuffled mini-batches; models/neural/network_trainer.h has the mathematics.
/// Members draw different batches, so each trains in its own stream. A step on a whole batch is recorded
/// once, and cursors on the device say which batch it is; the last batch of an epoch changes its size every
/// round and is not recorded.
class BatchTrainer : public ResidentTrainer {
 public:
  /// Like StackedTrainer's; the spec has mini-batches.
  BatchTrainer(const DeviceNetworkSpec& spec, float* theta, Products& products);

  /// Never waits, unless the training before was repeated. The update brought the order of the batches.
  void train(const ResidentHistory& history) override;
  bool has_failed(const Outcome& outcome, double pairs, int repeats) const override;
  bool can_repeat(const Outcome& outcome, int repeats) const override;
  void repeat(const ResidentHistory& history, std::int64_t member, int repeats) override;
  Divergence find_divergence(const ResidentHistory& history) override;
  /// The first loss that has exploded and the number of its step; else 0.
  const double* outcome() const override { return outcome_.data(); }
  bool has_steps() const override { return false; }
  std::int64_t bytes() const override;
  void save(StateWriter&) const override {}
  void load(StateReader&) override {}

 private:
  /// The memory that one member trains in.
  struct Place {
    GrowingArray<float> rows;
    GrowingArray<float> scores;
    GrowingArray<float> partial;
    GrowingArray<double> losses;
    GrowingArray<double> labels;   // of the history's terms, with noise
    GrowingArray<double> weights;  // LambdaRank's, of the history's terms; batches use the changes alone
    GrowingArray<double> changes;
    GrowingArray<float> features;  // of the batch
    GrowingArray<PairTerm> terms;
    DeviceArray<double> loss{1};
  };

  void start(const ResidentHistory& history);
  void set_step(std::int64_t member, double step);
  void make_room(const ResidentHistory& history);
  bool make_corrections(std::int64_t steps);
  void start_whole_batch(const ResidentHistory& history);
  /// The next `count` observations of every member.
  void start_batches(const ResidentHistory& history, std::int64_t count);
  void weigh(Products& products, const ResidentHistory& history, std::int64_t member);
  void train_batch(Products& products, const ResidentHistory& history, std::int64_t count,
                   std::int64_t member);

  NetworkStack stack(std::int64_t member) const;
  TrainingWorkspace workspace(std::int64_t member);
  BadLoss bad_loss(std::int64_t member);
  /// The state begins at parameter `first` of all members'.
  OptimizerState optimizer_state(std::int64_t first);

  DeviceNetworkSpec spec_;
  float* theta_;
  Products& products_;
  Stream stream_;
  std::int64_t parameters_;
  DeviceArray<float> before_;    // θ before the latest training
  DeviceArray<double> outcome_;  // [kOutcomes × members]: the first bad loss's step, 0, and that loss
  std::vector<double> host_steps_;
  DeviceArray<double> steps_;     // [members]
  DeviceArray<double> gradient_;  // [members × p], like the next three
  DeviceArray<double> position_;
  DeviceArray<double> first_moment_;
  DeviceArray<double> second_moment_;
  DeviceArray<PhiloxKey> noise_keys_;
  DeviceArray<std::uint32_t> noise_round_;
  std::int64_t incidence_pairs_ = 0;  // of the largest batch so far
  DeviceArray<std::int32_t> incidence_offsets_;
  DeviceArray<std::int32_t> incidence_ends_;
  DeviceArray<BatchCursor> cursors_;  // [members]
  DeviceArray<StepRates> corrections_;
  std::vector<Place> places_;  // a member's
  MemberStreams member_streams_;

  // A whole batch of every member, for the current places of the arrays.
  RecordedWork whole_batch_;
  bool has_run_ = false;  // with these arrays
  ResidentHistory::Bucket bucket_;
  std::int64_t history_moves_ = 0;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
