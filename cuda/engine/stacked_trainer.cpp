#include "cuda/engine/stacked_trainer.h"

#include <algorithm>
#include <cmath>

#include "core/math/step_size.h"
#include "core/random/rng_stream.h"
#include "cuda/engine/training_kernel_choice.h"
#include "cuda/ops/ndcg_weights.h"
#include "cuda/ops/tangent_factors.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr int kIterationsAtOnce = 10;

/// The start of a power iteration, the same vector as on the CPU.
std::vector<double> first_eigenvector(std::int64_t parameters) {
  std::vector<double> vector(parameters);
  RngStream draws(make_key({.purpose = Purpose::kProbe}), 0);
  draws.unit_vector(vector);
  return vector;
}

std::vector<StepRates> rates_of(const DeviceNetworkSpec& spec) {
  std::vector<StepRates> rates;
  if (spec.training.optimizer != Optimizer::kAdam) return rates;
  for (std::int64_t number = 1; number <= spec.training.steps; ++number)
    rates.push_back(step_rates(number, 0.0));
  return rates;
}

std::int64_t if_wanted(bool wanted, std::int64_t size) {
  return wanted ? size : 0;
}

}  // namespace

StackedTrainer::StackedTrainer(const DeviceNetworkSpec& spec, float* theta, Products& products)
    : spec_(spec),
      theta_(theta),
      products_(products),
      stream_(products.stream()),
      parameters_(spec.shape.parameters()),
      in_one_kernel_(trains_in_one_kernel(spec)),
      centre_(spec.first),
      before_(spec.members * parameters_),
      outcome_(kOutcomes * spec.members),
      steps_(if_wanted(stops(), spec.members)),
      gradient_(if_wanted(keeps_gradient(), spec.members * parameters_)),
      position_(
          if_wanted(spec.training.optimizer != Optimizer::kGradientDescent, spec.members * parameters_)),
      first_moment_(position_.size()),
      second_moment_(if_wanted(spec.training.optimizer == Optimizer::kAdam, position_.size())),
      step_rates_(std::span<const StepRates>(rates_of(spec))),
      first_eigenvector_(std::span<const double>(first_eigenvector(parameters_))),
      eigenvectors_(std::span<const double>(std::vector<double>(spec.members * parameters_))),
      curvatures_(std::span<const CurvatureState>(std::vector<CurvatureState>(spec.members))),
      noise_keys_(spec.noise.keys),
      round_(1),
      observed_(1),
      member_streams_(products.plans(), spec.members) {}

void StackedTrainer::make_room(const ResidentHistory& history) {
  const ResidentHistory::Bucket& bucket = history.bucket();
  sizes_ = training_sizes(spec_.shape, spec_.members, bucket.docs, bucket.terms);
  const bool weighs = spec_.training.weigh_by_ndcg;
  if (in_one_kernel_) {
    const PersistentSizes sizes = persistent_sizes(spec_.shape, spec_.members, bucket.docs, bucket.terms);
    const bool by_curvature = spec_.training.optimizer != Optimizer::kAdam;
    sizes_ = {if_wanted(by_curvature, bucket.docs * spec_.shape.factors()), sizes.scores, sizes.partial,
              sizes.losses};
    gates_.reserve(stream_, sizes.gates);
    slopes_.reserve(stream_, sizes.slopes);
    norms_.reserve(stream_, sizes.norms);
  }
  bool moved = rows_.reserve(stream_, sizes_.rows);
  moved |= scores_.reserve(stream_, sizes_.scores);
  moved |= partial_.reserve(stream_, sizes_.partial);
  moved |= losses_.reserve(stream_, sizes_.losses);
  moved |= labels_.reserve(stream_,
                           if_wanted(weighs || spec_.noise.deviation > 0.0, spec_.members * bucket.terms));
  moved |= weights_.reserve(stream_, if_wanted(weighs, spec_.members * bucket.terms));
  moved |= changes_.reserve(stream_, if_wanted(weighs, spec_.members * bucket.observations));
  curvature_work_.reserve(stream_, curvature_workspace(spec_.shape, bucket.docs));
  if (!moved && bucket == bucket_ && history.moves() == history_moves_) return;
  bucket_ = bucket;
  history_moves_ = history.moves();
  trained_in_bucket_ = 0;
  for (Recorded& one : recorded_) {
    one.work.forget();
    one.timed = false;
  }
}

NetworkStack StackedTrainer::stack(Members members) const {
  return {spec_.shape, theta_ + members.first * parameters_, members.count, spec_.members};
}

TrainingWorkspace StackedTrainer::workspace(Members members) {
  const auto place = [&](auto& array, std::int64_t size) {
    return array.data() + members.first * (size / spec_.members);
  };
  return {place(rows_, sizes_.rows), place(scores_, sizes_.scores), place(partial_, sizes_.partial),
          place(losses_, sizes_.losses)};
}

PairHistoryView StackedTrainer::view(const ResidentHistory& history, Members members) {
  PairHistoryView view = history.view();
  if (spec_.noise.deviation > 0.0) view.labels = labels_.data() + members.first * view.count;
  return view;
}

OptimizerState StackedTrainer::optimizer_state(Members members) {
  const std::int64_t first = members.first * parameters_;
  return {position_.data() + first, first_moment_.data() + first,
          second_moment_.size() > 0 ? second_moment_.data() + first : nullptr};
}

double StackedTrainer::rate() const {
  return decayed_rate(spec_.training.learning_rate, spec_.training.learning_rate_decay, trainings_);
}

void StackedTrainer::train(const ResidentHistory& history) {
  make_room(history);
  copy_bytes(stream_, round_.data(), history.latest().round, sizeof(std::uint32_t));
  copy_bytes(stream_, observed_.data(), history.latest().observed, sizeof(std::int64_t));
  copy_bytes(stream_, before_.data(), theta_, static_cast<std::size_t>(before_.size()) * sizeof(float));
  const bool by_curvature = spec_.training.optimizer != Optimizer::kAdam;
  if (by_curvature &&
      (curvature_is_stale(history.observed(), curvature_pairs_) || history.latest_docs_outgrow())) {
    for (std::int64_t member = 0; member < spec_.members; ++member) find_curvature(history, member);
    curvature_pairs_ = history.observed();
  }
  find_steps({0, spec_.members}, rate());
  start(history);
  ++trainings_;
}

void StackedTrainer::find_steps(Members members, double rate) {
  // Adam's curvatures stay 0: its step is the rate itself.
  const double prior =
      spec_.training.optimizer == Optimizer::kAdam ? 1.0 : prior_curvature(spec_.training.prior_weight);
  for (std::int64_t member = members.first; member < members.first + members.count; ++member)
    step_from_curvature(stream_, curvatures_.data() + member, rate, prior, outcome_.data() + member);
}

void StackedTrainer::find_curvature(const ResidentHistory& history, std::int64_t member) {
  const PairHistoryView seen = history.view();
  CurvatureTask task;
  task.shape = spec_.shape;
  task.rows = {rows_.data(), seen.docs, spec_.shape.factors()};
  task.terms = seen.terms;
  task.count = seen.count;
  task.incidence = seen.incidence;
  task.fresh = first_eigenvector_.data();
  tangent_factors(products_, stack({member, 1}), seen.features, task.rows, {});
  double* vector = eigenvectors_.data() + member * parameters_;
  CurvatureState* state = curvatures_.data() + member;
  begin_curvature(stream_, task, vector, curvature_work_.data(), state);
  for (int iteration = 0; iteration < kMostCurvatureIterations; iteration += kIterationsAtOnce) {
    for (int i = 0; i < kIterationsAtOnce; ++i)
      iterate_curvature(stream_, task, vector, curvature_work_.data(), state);
    CurvatureState found;
    OwnedStream::wait_for(stream_);
    copy_to_host<CurvatureState>(state, std::span(&found, 1));
    if (found.settled != 0) break;
  }
}

/// The first trainings in a bucket, one per schedule that may be chosen, are not recorded: a size that is
/// seen once needs no graph, and kernels must be loaded before a graph is recorded. The next ones time the
/// schedules in turn.
std::size_t StackedTrainer::next_schedule() const {
  if (spec_.members == 1 || spec_.training.schedule == MemberSchedule::kBatched) return 0;
  if (spec_.training.schedule == MemberSchedule::kStreams) return 1;
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    if (!recorded_[i].timed) return i;
  }
  const auto seconds = [](const Recorded& one) { return one.end.seconds_since(one.begin); };
  return seconds(recorded_[1]) < seconds(recorded_[0]) ? 1 : 0;
}

void StackedTrainer::start(const ResidentHistory& history) {
  if (in_one_kernel_) {
    descend(products_, history, {0, spec_.members});
    return;
  }
  const std::int64_t trained = trained_in_bucket_++;
  const bool tries_both = spec_.training.schedule == MemberSchedule::kAuto && spec_.members > 1;
  if (trained == 0 || (tries_both && trained == 1)) {
    const bool streams = spec_.training.schedule == MemberSchedule::kStreams || trained == 1;
    descend_all(history, streams ? MemberSchedule::kStreams : MemberSchedule::kBatched);
    return;
  }
  const std::size_t chosen = next_schedule();
  Recorded& one = recorded_[chosen];
  const auto work = [&] { descend_all(history, kSchedules[chosen]); };
  const bool times = one.work.record(stream_, work) && !one.timed;
  if (times) one.begin.record(stream_);
  one.work.start(stream_, work);
  if (times) one.end.record(stream_);
  one.timed |= times;
}

void StackedTrainer::descend_all(const ResidentHistory& history, MemberSchedule schedule) {
  if (schedule != MemberSchedule::kStreams) {
    descend(products_, history, {0, spec_.members});
    return;
  }
  member_streams_.run(products_, [&](Products& products, std::int64_t member) {
    descend(products, history, {member, 1});
  });
}

StackedObjective StackedTrainer::objective(Members members) const {
  return {1.0, spec_.training.prior_weight, centre_.data() + members.first * parameters_};
}

void StackedTrainer::descend(Products& products, const ResidentHistory& history, Members members) {
  const Stream stream = products.stream();
  const PairHistoryView seen = view(history, members);
  if (spec_.noise.deviation > 0.0) {
    perturb_labels(stream, seen.terms, seen.count, members.count, noise_keys_.data() + members.first,
                   round_.data(), spec_.noise.deviation, labels_.data() + members.first * seen.count);
  }
  if (spec_.training.optimizer != Optimizer::kGradientDescent) {
    begin_training(stream, members.count * parameters_, theta_ + members.first * parameters_,
                   optimizer_state(members));
  }
  if (in_one_kernel_) {
    descend_in_one_kernel(stream, history, members);
  } else {
    descend_by_kernels(products, history, members);
  }
}

void StackedTrainer::descend_in_one_kernel(Stream stream, const ResidentHistory& history, Members members) {
  PersistentTraining training;
  training.stack = stack(members);
  training.history = view(history, members);
  training.objective = objective(members);
  training.optimizer = spec_.training.optimizer;
  training.steps = spec_.training.steps;
  training.step = outcome_.data() + members.first;
  training.rates = step_rates_.data();
  training.state = optimizer_state(members);
  training.stop_norm = spec_.training.stop_gradient_norm;
  training.observed = observed_.data();
  if (stops()) training.gradient = gradient_.data() + members.first * parameters_;
  training.workspace = {scores_.data(), partial_.data(), gates_.data(),
                        slopes_.data(), losses_.data(),  norms_.data()};
  training.theta = theta_ + members.first * parameters_;
  training.began = outcome_.data() + spec_.members + members.first;
  training.ended = training.began + spec_.members;
  train_persistently(stream, training);
}

void StackedTrainer::descend_by_kernels(Products& products, const ResidentHistory& history,
                                        Members members) {
  const Stream stream = products.stream();
  const NetworkStack networks = stack(members);
  NetworkStack trained = networks;
  trained.precision = spec_.training.precision;
  const TrainingWorkspace work = workspace(members);
  const PairHistoryView plain = view(history, members);
  const std::int64_t p = parameters_;
  const StackedObjective objective = this->objective(members);
  double* began = outcome_.data() + spec_.members + members.first;
  double* ended = began + spec_.members;
  PairHistoryView seen = plain;
  if (spec_.training.weigh_by_ndcg) {
    seen.weights = weights_.data() + members.first * plain.count;
    seen.labels = labels_.data() + members.first * plain.count;
  }
  if (stops()) {
    copy_bytes(stream, steps_.data() + members.first, outcome_.data() + members.first,
               static_cast<std::size_t>(members.count) * sizeof(double));
  }
  for (std::int64_t number = 1; number <= spec_.training.steps; ++number) {
    // Whether a training raised the loss is decided in float32.
    forward_history(products, number == 1 ? networks : trained, seen, work);
    if (spec_.training.weigh_by_ndcg) {
      const std::int64_t observations = bucket_.observations;
      ndcg_weights(stream, history.impressions(), history.observations(), observations, plain.count,
                   history.observation_offsets(), history.observation_items(), members.count, plain.docs,
                   work.scores, changes_.data() + members.first * observations,
                   weights_.data() + members.first * plain.count,
                   labels_.data() + members.first * plain.count);
    }
    // Of LambdaRank unweighted, like the loss at the end.
    if (number == 1) pair_losses(stream, networks, plain, objective, work, began);
    GradientUse use;
    if (keeps_gradient()) {
      use.gradient = gradient_.data() + members.first * p;
    } else {
      use.theta = theta_ + members.first * p;
      use.step = outcome_.data() + members.first;
    }
    pair_gradients(products, trained, seen, objective, work, use);
    if (keeps_gradient()) move(stream, members, number);
  }
  forward_history(products, networks, plain, work);
  pair_losses(stream, networks, plain, objective, work, ended);
}

void StackedTrainer::move(Stream stream, Members members, std::int64_t number) {
  const double* gradient = gradient_.data() + members.first * parameters_;
  const double* step = (stops() ? steps_ : outcome_).data() + members.first;
  float* theta = theta_ + members.first * parameters_;
  if (stops()) {
    stop_at_small_gradients(stream, members.count, parameters_, gradient, spec_.training.stop_gradient_norm,
                            observed_.data(), steps_.data() + members.first);
  }
  switch (spec_.training.optimizer) {
    case Optimizer::kGradientDescent:
      gradient_descent_step(stream, members.count, parameters_, gradient, step, theta);
      return;
    case Optimizer::kNesterov:
      nesterov_step(stream, members.count, parameters_, gradient, step, optimizer_state(members), theta);
      return;
    case Optimizer::kAdam:
      adam_step(stream, members.count, parameters_, step_rates_.data() + number - 1, gradient, step,
                optimizer_state(members), theta);
      return;
  }
}

bool StackedTrainer::has_failed(const Outcome& outcome, double pairs, int repeats) const {
  return training_failed(outcome.began, outcome.ended, pairs, !spec_.training.weigh_by_ndcg, repeats);
}

bool StackedTrainer::can_repeat(const Outcome& outcome, int repeats) const {
  return olrank::can_repeat(outcome.began, repeats);
}

void StackedTrainer::repeat(const ResidentHistory& history, std::int64_t member, int repeats) {
  copy_bytes(stream_, theta_ + member * parameters_, before_.data() + member * parameters_,
             static_cast<std::size_t>(parameters_) * sizeof(float));
  if (repeats == kRepeatThatFindsCurvature && spec_.training.optimizer != Optimizer::kAdam)
    find_curvature(history, member);
  --trainings_;
  find_steps({member, 1}, repeated_rate(rate(), repeats));
  ++trainings_;
  descend(products_, history, {member, 1});
}

ResidentTrainer::Divergence StackedTrainer::find_divergence(const ResidentHistory& history) {
  const std::int64_t steps = spec_.training.steps;
  const auto pairs = static_cast<double>(history.observed());
  Divergence found{steps, std::nan("")};
  bool good = true;
  for (std::int64_t tried = 1; tried <= steps && good; ++tried) {
    undo();
    spec_.training.steps = tried;
    descend(products_, history, {0, spec_.members});
    OwnedStream::wait_for(stream_);
    std::vector<double> losses(2 * spec_.members);
    copy_to_host(outcome_.data() + spec_.members, std::span(losses));
    for (std::int64_t member = 0; member < spec_.members && good; ++member) {
      const double loss = losses[spec_.members + member];
      const bool raised = has_failed({0.0, losses[member], loss}, pairs, kMostRepeats);
      if (tried == steps && raised && std::isnan(found.loss)) found.loss = loss;
      if (std::isfinite(loss) && !loss_has_exploded(losses[member], loss, pairs)) continue;
      // The step that starts from this loss, or the last step, which ends with it.
      found = {std::min(tried + 1, steps), loss};
      good = false;
    }
  }
  spec_.training.steps = steps;
  undo();
  OwnedStream::wait_for(stream_);
  return found;
}

void StackedTrainer::undo() {
  copy_bytes(stream_, theta_, before_.data(), static_cast<std::size_t>(before_.size()) * sizeof(float));
}

std::int64_t StackedTrainer::bytes() const {
  const std::int64_t numbers = steps_.size() + gradient_.size() + position_.size() + first_moment_.size() +
                               second_moment_.size() + first_eigenvector_.size() + eigenvectors_.size();
  return numbers * static_cast<std::int64_t>(sizeof(double)) +
         2 * before_.size() * static_cast<std::int64_t>(sizeof(float)) + rows_.bytes() + scores_.bytes() +
         partial_.bytes() + losses_.bytes() + labels_.bytes() + weights_.bytes() + changes_.bytes() +
         curvature_work_.bytes() + gates_.bytes() + slopes_.bytes() + norms_.bytes() +
         member_streams_.bytes();
}

void StackedTrainer::save(StateWriter& state) const {
  std::vector<double> estimates;
  for (const CurvatureState& one : curvatures_.to_host()) estimates.push_back(one.estimate);
  state.put("device.curvatures", spec_.member_share().all_of(estimates));
  state.put("device.curvature_pairs", curvature_pairs_);
  state.put("device.eigenvectors", spec_.member_share().all_of(eigenvectors_.to_host()));
  state.put("device.trainings", trainings_);
}

void StackedTrainer::load(StateReader& state) {
  std::vector<double> all(spec_.member_share().members());
  state.get_into("device.curvatures", std::span(all));
  const std::vector<double> estimates = spec_.member_share().own_of(all);
  curvature_pairs_ = state.get_one<std::int64_t>("device.curvature_pairs");
  all.resize(spec_.member_share().members() * parameters_);
  state.get_into("device.eigenvectors", std::span(all));
  const std::vector<double> vectors = spec_.member_share().own_of(all);
  trainings_ = state.get_one<std::int64_t>("device.trainings");
  std::vector<CurvatureState> curvatures(estimates.size());
  for (std::size_t member = 0; member < estimates.size(); ++member)
    curvatures[member].estimate = estimates[member];
  copy_to_device(std::span<const CurvatureState>(curvatures), curvatures_.data());
  copy_to_device(std::span<const double>(vectors), eigenvectors_.data());
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
