#include "cuda/engine/resident_trainer.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/math/optimizer_step.h"
#include "cuda/engine/growing_array.h"
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
/// Members draw different batches, which they train on side by side. A step on a whole batch is recorded
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
        loss_(spec.members) {}

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
    return bytes_of(gradient_, position_, first_moment_, second_moment_, before_, incidence_ends_,
                    incidence_ends_, corrections_, features_, terms_, rows_, scores_, partial_, losses_,
                    labels_, weights_, changes_);
  }
  void save(StateWriter&) const override {}
  void load(StateReader&) override {}

 private:
  void start(const ResidentHistory& history) {
    copy_numbers(stream_, theta_, before_.data(), before_.size());
    clear_numbers(stream_, outcome_.data(), outcome_.size());
    begin_training(stream_, spec_.members * parameters_, theta_, optimizer_state());
    const PairHistoryView all = history.view();
    const std::int64_t observed = history.observed();
    const std::int64_t batch = spec_.training.mini_batches->batch;
    begin_batches(
        stream_, spec_.members, history.latest().order, spec_.training.mini_batches->epochs * observed,
        step_rates(1, spec_.training.mini_batches->decay / static_cast<double>(observed)), cursors_.data());
    if (spec_.noise.deviation > 0.0) {
      perturb_labels(stream_, all.terms, all.count, spec_.members, noise_keys_.data(), noise_round_.data(),
                     spec_.noise.deviation, labels_.data());
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
    const PairSizes& bucket = history.bucket();
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
    const auto reserve = [&](auto& array, std::int64_t of_member) {
      moved |= array.reserve(stream_, spec_.members * of_member);
    };
    reserve(features_, 2 * largest * spec_.shape.inputs);
    reserve(terms_, largest);
    reserve(rows_, sizes.rows);
    reserve(scores_, sizes.scores);
    reserve(partial_, sizes.partial);
    reserve(losses_, sizes.losses);
    if (spec_.training.weigh_by_ndcg || spec_.noise.deviation > 0.0) reserve(labels_, bucket.terms);
    if (spec_.training.weigh_by_ndcg) {
      reserve(weights_, bucket.terms);
      reserve(changes_, bucket.observations);
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
    const NetworkStack networks{spec_.shape, theta_, spec_.members, 1};
    const TrainingWorkspace work{rows_.data(), scores_.data(), partial_.data(), losses_.data()};
    const PairHistoryView all = history.view();
    const std::int64_t observations = history.bucket().observations;
    const BadLoss bad{outcome_.data(), outcome_.data() + 2 * spec_.members};
    const bool weighs = spec_.training.weigh_by_ndcg;
    if (weighs) {
      forward_history(products_, networks, all, work);
      note_bad_scores(stream_, spec_.members, cursors_.data(), all.docs, scores_.data(), bad);
      ndcg_weights(stream_, history.impressions(), history.observations(), observations, all.count,
                   history.observation_offsets(), history.observation_items(), spec_.members, all.docs,
                   scores_.data(), changes_.data(), weights_.data(), labels_.data());
    }
    gather_batch(stream_,
                 {.features = all.features,
                  .columns = spec_.shape.inputs,
                  .terms = all.terms,
                  .observations = history.observations(),
                  .labels = spec_.noise.deviation > 0.0 ? labels_.data() : nullptr,
                  .changes = weighs ? changes_.data() : nullptr,
                  .terms_count = all.count,
                  .observation_count = observations},
                 spec_.members, cursors_.data(), count, features_.data(), terms_.data());
    const PairHistoryView batch{.features = features_.data(),
                                .docs = 2 * count,
                                .terms = terms_.data(),
                                .count = count,
                                .incidence = {incidence_offsets_.data(), incidence_ends_.data()},
                                .features_step = 2 * count * spec_.shape.inputs,
                                .terms_step = count};
    const StackedObjective objective{1.0 / static_cast<double>(count), 0.0, nullptr};
    forward_history(products_, networks, batch, work);
    pair_losses(stream_, networks, batch, objective, work, loss_.data());
    pair_gradients(products_, networks, batch, objective, work, {gradient_.data(), nullptr, nullptr});
    // The cursors' rates are alike.
    const Step kind = spec_.training.optimizer == Optimizer::kAdam ? Step::kAdam : Step::kDecayed;
    optimizer_step(stream_, kind, spec_.members, parameters_, &cursors_.data()->rates, gradient_.data(),
                   steps_.data(), optimizer_state(), theta_);
    finish_batch(stream_, spec_.members, count, loss_.data(), corrections_.data(), cursors_.data(), bad);
  }
  OptimizerState optimizer_state() {
    return {position_.data(), first_moment_.data(),
            second_moment_.size() > 0 ? second_moment_.data() : nullptr};
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
  DeviceArray<double> loss_;  // [members]
  // These grow, and hold one member's numbers after another's.
  GrowingArray<float> rows_;
  GrowingArray<float> scores_;
  GrowingArray<float> partial_;
  GrowingArray<double> losses_;
  GrowingArray<double> labels_;   // of the history's terms, with noise
  GrowingArray<double> weights_;  // LambdaRank's, of the history's terms; batches use the changes alone
  GrowingArray<double> changes_;
  GrowingArray<float> features_;  // of the batches
  GrowingArray<PairTerm> terms_;

  // A whole batch of every member, for the current places of the arrays.
  RecordedWork whole_batch_;
  PairSizes bucket_;
  std::int64_t history_moves_ = 0;
};

}  // namespace

std::unique_ptr<ResidentTrainer> make_batch_trainer(const DeviceNetworkSpec& spec, float* theta,
                                                    Products& products) {
  return std::make_unique<BatchTrainer>(spec, theta, products);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
