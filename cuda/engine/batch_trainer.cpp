#include "cuda/engine/batch_trainer.h"

#include <algorithm>
#include <cmath>

namespace olrank::OLRANK_DEVICE_NAMESPACE {

TrainingSizes batch_sizes(const NetworkShape& shape, std::int64_t batch, std::int64_t observed) {
  const std::int64_t largest = std::min(batch, observed);
  const std::int64_t rest = observed % largest;
  TrainingSizes sizes = training_sizes(shape, 1, 2 * largest, largest);
  // Fewer documents may be cut into more parts.
  sizes.partial = std::max(sizes.partial, training_sizes(shape, 1, 2 * rest, rest).partial);
  return sizes;
}

BatchTrainer::BatchTrainer(const DeviceNetworkSpec& spec, float* theta, Stream stream)
    : spec_(spec),
      theta_(theta),
      stream_(stream),
      parameters_(spec.shape.parameters()),
      centre_(spec.first),
      before_(spec.members * parameters_),
      outcome_(kOutcomes * spec.members),
      steps_(std::span<const double>(
          std::vector<double>(static_cast<std::size_t>(spec.members), spec.learning_rate))),
      gradient_(spec.members * parameters_),
      position_(gradient_.size()),
      first_moment_(gradient_.size()),
      second_moment_(spec.optimizer == Optimizer::kAdam ? gradient_.size() : 0),
      noise_keys_(spec.noise_keys),
      round_(1),
      places_(static_cast<std::size_t>(spec.members)),
      member_streams_(spec.members) {}

NetworkStack BatchTrainer::stack(std::int64_t member) const {
  return {spec_.shape, theta_ + member * parameters_, 1, 1, spec_.precision};
}

TrainingWorkspace BatchTrainer::workspace(std::int64_t member) {
  Place& place = places_[static_cast<std::size_t>(member)];
  return {place.rows.data(), place.scores.data(), place.partial.data(), place.losses.data()};
}

OptimizerState BatchTrainer::optimizer_state(std::int64_t first) {
  return {position_.data() + first, first_moment_.data() + first,
          second_moment_.size() > 0 ? second_moment_.data() + first : nullptr};
}

void BatchTrainer::make_room(const ResidentHistory& history) {
  const ResidentHistory::Bucket& bucket = history.bucket();
  const std::int64_t observed = history.observed();
  const std::int64_t largest = std::min(spec_.mini_batches->batch, observed);
  if (largest > incidence_pairs_) {
    incidence_pairs_ = std::max(largest, 2 * incidence_pairs_);
    incidence_offsets_ = DeviceArray<std::int32_t>(2 * incidence_pairs_ + 1);
    incidence_ends_ = DeviceArray<std::int32_t>(2 * incidence_pairs_);
    fill_batch_incidence(stream_, incidence_pairs_, {incidence_offsets_.data(), incidence_ends_.data()});
  }
  TrainingSizes sizes = batch_sizes(spec_.shape, spec_.mini_batches->batch, observed);
  if (spec_.weigh_by_ndcg) {
    // Weights are of the scores of the whole history.
    const TrainingSizes whole = training_sizes(spec_.shape, 1, bucket.docs, bucket.terms);
    sizes.rows = std::max(sizes.rows, whole.rows);
    sizes.scores = std::max(sizes.scores, whole.scores);
  }
  for (Place& place : places_) {
    place.features.reserve(stream_, 2 * largest * spec_.shape.inputs);
    place.terms.reserve(stream_, largest);
    place.rows.reserve(stream_, sizes.rows);
    place.scores.reserve(stream_, sizes.scores);
    place.partial.reserve(stream_, sizes.partial);
    place.losses.reserve(stream_, sizes.losses);
    if (spec_.weigh_by_ndcg || spec_.noise > 0.0) place.labels.reserve(stream_, bucket.terms);
    if (!spec_.weigh_by_ndcg) continue;
    place.weights.reserve(stream_, bucket.terms);
    place.changes.reserve(stream_, bucket.observations);
  }
}

void BatchTrainer::train(const ResidentHistory& history) {
  make_room(history);
  const auto theta_bytes = static_cast<std::size_t>(before_.size()) * sizeof(float);
  copy_bytes(stream_, round_.data(), history.latest().round, sizeof(std::uint32_t));
  copy_bytes(stream_, before_.data(), theta_, theta_bytes);
  copy_bytes(stream_, theta_, centre_.data(), theta_bytes);
  fill_bytes(stream_, outcome_.data(), 0, static_cast<std::size_t>(outcome_.size()) * sizeof(double));
  begin_training(stream_, spec_.members * parameters_, theta_, optimizer_state(0));
  member_streams_.run(stream_,
                      [&](Stream stream, std::int64_t member) { train_member(stream, history, member); });
}

void BatchTrainer::train_member(Stream stream, const ResidentHistory& history, std::int64_t member) {
  Place& place = places_[static_cast<std::size_t>(member)];
  const PairHistoryView all = history.view();
  const std::int64_t observed = history.observed();
  const std::int64_t epochs = spec_.mini_batches->epochs;
  BatchSource source{all.features, spec_.shape.inputs, all.terms, history.observations()};
  if (spec_.noise > 0.0) {
    perturb_labels(stream, all.terms, all.count, 1, noise_keys_.data() + member, round_.data(), spec_.noise,
                   place.labels.data());
    source.labels = place.labels.data();
  }
  if (spec_.weigh_by_ndcg) source.changes = place.changes.data();
  const double decay = spec_.mini_batches->decay / static_cast<double>(observed);
  std::int64_t number = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const std::int32_t* order = history.latest().order + (member * epochs + epoch) * observed;
    for (std::int64_t begin = 0; begin < observed; begin += spec_.mini_batches->batch) {
      ++number;
      if (spec_.weigh_by_ndcg) weigh(stream, history, member, number);
      const std::int64_t count = std::min(spec_.mini_batches->batch, observed - begin);
      train_batch(stream, source, order + begin, count, number, decay, member);
    }
  }
}

void BatchTrainer::weigh(Stream stream, const ResidentHistory& history, std::int64_t member,
                         std::int64_t number) {
  Place& place = places_[static_cast<std::size_t>(member)];
  const PairHistoryView all = history.view();
  forward_history(stream, stack(member), all, workspace(member));
  note_bad_scores(stream, number, all.docs, place.scores.data(), outcome_.data() + member,
                  outcome_.data() + 2 * spec_.members + member);
  ndcg_weights(stream, history.impressions(), history.observations(), history.bucket().observations,
               all.count, history.observation_offsets(), history.observation_items(), 1, all.docs,
               place.scores.data(), place.changes.data(), place.weights.data(), place.labels.data());
}

void BatchTrainer::train_batch(Stream stream, const BatchSource& source, const std::int32_t* order,
                               std::int64_t count, std::int64_t number, double decay, std::int64_t member) {
  Place& place = places_[static_cast<std::size_t>(member)];
  gather_batch(stream, source, order, count, place.features.data(), place.terms.data());
  PairHistoryView batch;
  batch.features = place.features.data();
  batch.docs = 2 * count;
  batch.terms = place.terms.data();
  batch.count = count;
  batch.incidence = {incidence_offsets_.data(), incidence_ends_.data()};
  const StackedObjective objective{1.0 / static_cast<double>(count), 0.0, nullptr};
  const TrainingWorkspace work = workspace(member);
  forward_history(stream, stack(member), batch, work);
  pair_losses(stream, stack(member), batch, objective, work, place.loss.data());
  note_bad_loss(stream, number, place.loss.data(), outcome_.data() + member,
                outcome_.data() + 2 * spec_.members + member);
  double* gradient = gradient_.data() + member * parameters_;
  pair_gradients(stream, stack(member), batch, objective, work, {gradient, nullptr, nullptr});
  const std::int64_t at = member * parameters_;
  const OptimizerState state = optimizer_state(at);
  const double* step = steps_.data() + member;
  if (spec_.optimizer == Optimizer::kAdam) {
    adam_step(stream, 1, parameters_, number, decay, gradient, step, state, theta_ + at);
  } else {
    decayed_step(stream, 1, parameters_, decay, gradient, step, state, theta_ + at);
  }
}

ResidentTrainer::Divergence BatchTrainer::find_divergence(const ResidentHistory& /*history*/) {
  copy_bytes(stream_, theta_, before_.data(), static_cast<std::size_t>(before_.size()) * sizeof(float));
  OwnedStream::wait_for(stream_);
  const std::vector<double> outcome = outcome_.to_host();
  for (std::int64_t member = 0; member < spec_.members; ++member) {
    const double number = outcome[static_cast<std::size_t>(member)];
    if (number != 0.0)
      return {static_cast<std::int64_t>(number),
              outcome[static_cast<std::size_t>(2 * spec_.members + member)]};
  }
  return {};
}

std::int64_t BatchTrainer::bytes() const {
  const auto bytes_of = [](const auto& array, std::size_t size) {
    return array.size() * static_cast<std::int64_t>(size);
  };
  std::int64_t total = 3 * bytes_of(gradient_, sizeof(double)) + bytes_of(second_moment_, sizeof(double)) +
                       2 * bytes_of(before_, sizeof(float)) +
                       2 * bytes_of(incidence_ends_, sizeof(std::int32_t));
  for (const Place& place : places_) {
    total += place.features.bytes() + place.terms.bytes() + place.rows.bytes() + place.scores.bytes() +
             place.partial.bytes() + place.losses.bytes() + place.labels.bytes() + place.weights.bytes() +
             place.changes.bytes();
  }
  return total;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
