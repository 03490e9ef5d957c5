#include "cuda/engine/batch_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/math/optimizer_step.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/recorded_work.h"
#include "cuda/ops/optimizer_step.h"
#include "cuda/ops/replay.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

TrainingSizes batch_sizes(const NetworkShape& shape, std::int64_t batch, std::int64_t observed) {
  const std::int64_t largest = std::min(batch, observed);
  TrainingSizes sizes = training_sizes(shape, 1, 2 * largest, largest);
  sizes.partial = most_partial_sums(shape, 1, 2 * largest);
  return sizes;
}

namespace {

/// Training by shuffled mini-batches; models/neural/network_trainer.cpp has the mathematics.
/// Members draw different batches, so each trains in its own stream. A step on a whole batch is recorded
/// once, and cursors on the device say which batch it is; the last batch of an epoch changes its size every
/// round and is not recorded.
class BatchTrainer : public ResidentTrainer {
 public:
  BatchTrainer(const DeviceNetworkSpec& spec, float* theta, Products& products)
      : spec_(spec),
        theta_(theta),
        products_(products),
        stream_(products.stream()),
        parameters_(spec.shape.parameters()),
        before_(spec.members * parameters_),
        outcome_(filled_array(kOutcomes * spec.members, 0.0)),
        host_steps_(spec.members, spec.training.learning_rate),
        steps_(std::span<const double>(host_steps_)),
        gradient_(spec.members * parameters_),
        position_(gradient_.size()),
        first_moment_(gradient_.size()),
        second_moment_(spec.training.optimizer == Optimizer::kAdam ? gradient_.size() : 0),
        noise_keys_(spec.noise.keys),
        noise_round_(1),
        cursors_(spec.members),
        places_(spec.members),
        member_streams_(products.plans(), spec.members) {}

  /// Never waits, unless the training before was repeated. The update brought the order of the batches.
  void train(const ResidentHistory& history) override {
    make_room(history);
    copy_bytes(stream_, noise_round_.data(), history.latest().noise_round, sizeof(std::uint32_t));
    copy_numbers(stream_, before_.data(), theta_, before_.size());
    for (std::int64_t member = 0; member < spec_.members; ++member)
      set_step(member, spec_.training.learning_rate);
    start(history);
  }
  bool has_failed(const Outcome& outcome, double /*pairs*/, int /*repeats*/) const override {
    return batch_loss_has_exploded(outcome.ended);
  }
  /// The loss of the first batch is that of where the training starts, whatever the step.
  bool can_repeat(const Outcome& outcome, int repeats) const override {
    return outcome.number != 1.0 && repeats < kMostRepeats;
  }
  /// The other members train again too, to the same parameters.
  void repeat(const ResidentHistory& history, std::int64_t member, int repeats) override {
    set_step(member, repeated_rate(spec_.training.learning_rate, repeats));
    start(history);
  }
  Divergence find_divergence(const ResidentHistory& /*history*/) override {
    copy_numbers(stream_, theta_, before_.data(), before_.size());
    OwnedStream::wait_for(stream_);
    const std::vector<double> outcome = outcome_.to_host();
    for (std::int64_t member = 0; member < spec_.members; ++member) {
      const double number = outcome[member];
      if (number != 0.0) return {static_cast<std::int64_t>(number), outcome[2 * spec_.members + member]};
    }
    return {};
  }
  /// The first loss that has exploded and the number of its step; else 0.
  const double* outcome() const override { return outcome_.data(); }
  bool has_steps() const override { return false; }
  std::int64_t bytes() const override {
    std::int64_t total = bytes_of(gradient_, position_, first_moment_, second_moment_) + bytes_of(before_) +
                         bytes_of(incidence_ends_, incidence_ends_) + bytes_of(corrections_) +
                         member_streams_.bytes();
    for (const Place& place : places_) {
      total += place.features.bytes() + place.terms.bytes() + place.rows.bytes() + place.scores.bytes() +
               place.partial.bytes() + place.losses.bytes() + place.labels.bytes() + place.weights.bytes() +
               place.changes.bytes();
    }
    return total;
  }
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

  void start(const ResidentHistory& history) {
    const auto theta_bytes = static_cast<std::size_t>(before_.size()) * sizeof(float);
    copy_bytes(stream_, theta_, before_.data(), theta_bytes);
    clear_numbers(stream_, outcome_.data(), outcome_.size());
    begin_training(stream_, spec_.members * parameters_, theta_, optimizer_state(0));
    const PairHistoryView all = history.view();
    const std::int64_t observed = history.observed();
    const std::int64_t batch = spec_.training.mini_batches->batch;
    begin_batches(
        stream_, spec_.members, history.latest().order, spec_.training.mini_batches->epochs * observed,
        step_rates(1, spec_.training.mini_batches->decay / static_cast<double>(observed)), cursors_.data());
    if (spec_.noise.deviation > 0.0) {
      member_streams_.run(products_, [&](Products& products, std::int64_t member) {
        perturb_labels(products.stream(), all.terms, all.count, 1, noise_keys_.data() + member,
                       noise_round_.data(), spec_.noise.deviation, places_[member].labels.data());
      });
    }
    const auto start_whole_batch = [&] { start_batches(history, batch); };
    for (std::int64_t epoch = 0; epoch < spec_.training.mini_batches->epochs; ++epoch) {
      for (std::int64_t whole = 0; whole < observed / batch; ++whole)
        whole_batch_.run(stream_, start_whole_batch);
      if (observed % batch > 0) start_batches(history, observed % batch);
    }
  }
  void set_step(std::int64_t member, double step) {
    if (host_steps_[member] == step) return;
    host_steps_[member] = step;
    OwnedStream::wait_for(stream_);
    copy_to_device(std::span<const double>(&step, 1), steps_.data() + member);
  }
  void make_room(const ResidentHistory& history) {
    const ResidentHistory::Bucket& bucket = history.bucket();
    const std::int64_t observed = history.observed();
    const std::int64_t largest = std::min(spec_.training.mini_batches->batch, observed);
    bool moved = largest > incidence_pairs_;
    if (moved) {
      incidence_pairs_ = std::max(largest, 2 * incidence_pairs_);
      incidence_offsets_ = DeviceArray<std::int32_t>(2 * incidence_pairs_ + 1);
      incidence_ends_ = DeviceArray<std::int32_t>(2 * incidence_pairs_);
      fill_batch_incidence(stream_, incidence_pairs_, {incidence_offsets_.data(), incidence_ends_.data()});
    }
    TrainingSizes sizes = batch_sizes(spec_.shape, spec_.training.mini_batches->batch, observed);
    if (spec_.training.weigh_by_ndcg) {
      // Weights need the scores of the whole history.
      const TrainingSizes whole = training_sizes(spec_.shape, 1, bucket.docs, bucket.terms);
      sizes.rows = std::max(sizes.rows, whole.rows);
      sizes.scores = std::max(sizes.scores, whole.scores);
    }
    for (Place& place : places_) {
      moved |= place.features.reserve(stream_, 2 * largest * spec_.shape.inputs);
      moved |= place.terms.reserve(stream_, largest);
      moved |= place.rows.reserve(stream_, sizes.rows);
      moved |= place.scores.reserve(stream_, sizes.scores);
      moved |= place.partial.reserve(stream_, sizes.partial);
      moved |= place.losses.reserve(stream_, sizes.losses);
      if (spec_.training.weigh_by_ndcg || spec_.noise.deviation > 0.0)
        moved |= place.labels.reserve(stream_, bucket.terms);
      if (!spec_.training.weigh_by_ndcg) continue;
      moved |= place.weights.reserve(stream_, bucket.terms);
      moved |= place.changes.reserve(stream_, bucket.observations);
    }
    moved |= make_corrections(
        spec_.training.mini_batches->epochs *
        ((observed + spec_.training.mini_batches->batch - 1) / spec_.training.mini_batches->batch));
    // LambdaRank's weights read the whole bucket.
    if (!moved && history.moves() == history_moves_ && (!spec_.training.weigh_by_ndcg || bucket == bucket_))
      return;
    bucket_ = bucket;
    history_moves_ = history.moves();
    whole_batch_.forget();
  }
  /// Returns whether they have moved.
  bool make_corrections(std::int64_t steps) {
    if (steps < corrections_.size()) return false;
    std::vector<StepRates> rates;
    for (std::int64_t number = 1; number <= 2 * steps + 1; ++number)
      rates.push_back(step_rates(number, 0.0));
    corrections_ = DeviceArray<StepRates>(std::span<const StepRates>(rates));
    return true;
  }
  /// The next `count` observations of every member.
  void start_batches(const ResidentHistory& history, std::int64_t count) {
    member_streams_.run(products_, [&](Products& products, std::int64_t member) {
      if (spec_.training.weigh_by_ndcg) weigh(products, history, member);
      train_batch(products, history, count, member);
    });
  }
  void weigh(Products& products, const ResidentHistory& history, std::int64_t member) {
    const Stream stream = products.stream();
    Place& place = places_[member];
    const PairHistoryView all = history.view();
    forward_history(products, stack(member), all, workspace(member));
    note_bad_scores(stream, cursors_.data() + member, all.docs, place.scores.data(), bad_loss(member));
    ndcg_weights(stream, history.impressions(), history.observations(), history.bucket().observations,
                 all.count, history.observation_offsets(), history.observation_items(), 1, all.docs,
                 place.scores.data(), place.changes.data(), place.weights.data(), place.labels.data());
  }
  void train_batch(Products& products, const ResidentHistory& history, std::int64_t count,
                   std::int64_t member) {
    const Stream stream = products.stream();
    Place& place = places_[member];
    const PairHistoryView all = history.view();
    const BatchSource source{all.features,
                             spec_.shape.inputs,
                             all.terms,
                             history.observations(),
                             spec_.noise.deviation > 0.0 ? place.labels.data() : nullptr,
                             spec_.training.weigh_by_ndcg ? place.changes.data() : nullptr};
    BatchCursor* cursor = cursors_.data() + member;
    gather_batch(stream, source, cursor, count, place.features.data(), place.terms.data());
    PairHistoryView batch;
    batch.features = place.features.data();
    batch.docs = 2 * count;
    batch.terms = place.terms.data();
    batch.count = count;
    batch.incidence = {incidence_offsets_.data(), incidence_ends_.data()};
    const StackedObjective objective{1.0 / static_cast<double>(count), 0.0, nullptr};
    const TrainingWorkspace work = workspace(member);
    forward_history(products, stack(member), batch, work);
    pair_losses(stream, stack(member), batch, objective, work, place.loss.data());
    double* gradient = gradient_.data() + member * parameters_;
    pair_gradients(products, stack(member), batch, objective, work, {gradient, nullptr, nullptr});
    const std::int64_t at = member * parameters_;
    const OptimizerState state = optimizer_state(at);
    const Step kind = spec_.training.optimizer == Optimizer::kAdam ? Step::kAdam : Step::kDecayed;
    optimizer_step(stream, kind, 1, parameters_, &cursor->rates, gradient, steps_.data() + member, state,
                   theta_ + at);
    finish_batch(stream, count, place.loss.data(), corrections_.data(), cursor, bad_loss(member));
  }

  NetworkStack stack(std::int64_t member) const {
    return {spec_.shape, theta_ + member * parameters_, 1, 1};
  }
  TrainingWorkspace workspace(std::int64_t member) {
    Place& place = places_[member];
    return {place.rows.data(), place.scores.data(), place.partial.data(), place.losses.data()};
  }
  BadLoss bad_loss(std::int64_t member) {
    return {outcome_.data() + member, outcome_.data() + 2 * spec_.members + member};
  }
  /// The state begins at parameter `first` of all members'.
  OptimizerState optimizer_state(std::int64_t first) {
    return {position_.data() + first, first_moment_.data() + first,
            second_moment_.size() > 0 ? second_moment_.data() + first : nullptr};
  }

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
  ResidentHistory::Bucket bucket_;
  std::int64_t history_moves_ = 0;
};

}  // namespace

std::unique_ptr<ResidentTrainer> make_batch_trainer(const DeviceNetworkSpec& spec, float* theta,
                                                    Products& products) {
  return std::make_unique<BatchTrainer>(spec, theta, products);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
