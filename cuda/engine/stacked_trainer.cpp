#include "cuda/engine/resident_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/io/state_archive.h"
#include "core/math/optimizer_step.h"
#include "core/ops/optimizer_step.h"
#include "core/random/rng_stream.h"
#include "core/throw_error.h"
#include "cuda/engine/growing_array.h"
#include "cuda/ops/gradient_products.h"
#include "cuda/ops/list_loss.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/persistent_training.h"
#include "cuda/ops/replay.h"
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
  const std::int64_t most = std::max(spec.training.steps, spec.training.retraining.replay_steps);
  for (std::int64_t number = 1; number <= most; ++number) rates.push_back(step_rates(number, 0.0));
  return rates;
}

std::int64_t if_wanted(bool wanted, std::int64_t size) {
  return wanted ? size : 0;
}

/// Why one kernel cannot take the steps; empty if it can.
std::string_view why_not_in_one_kernel(const DeviceNetworkSpec& spec) {
  if (spec.training.weigh_by_ndcg) return "LambdaRank's weights are computed by other kernels";
  if (spec.shape.depth != 2) return "it trains networks with one hidden layer";
  if (!trains_persistently(spec.shape, spec.members))
    return "the network is too large for the shared memory of a multiprocessor, or the GPU does not start "
           "cooperative kernels";
  return {};
}

/// Whether one kernel takes the steps, on the calling thread's device: a function of the spec and the card.
bool trains_in_one_kernel(const DeviceNetworkSpec& spec) {
  if (spec.training.kernel == TrainingKernel::kRecorded) return false;
  const std::string_view why_not = why_not_in_one_kernel(spec);
  if (spec.training.kernel == TrainingKernel::kAuto) return why_not.empty();
  if (!why_not.empty()) {
    throw_error<InvalidArgument>(
        "training_kernel = \"persistent\" is impossible for this ranker, as {}: use \"auto\".", why_not);
  }
  return true;
}

/// Full-batch training of N networks side by side, on the whole history or a sample of it;
/// models/neural/full_batch_trainer.cpp has the mathematics. The steps of all members are one kernel, or a
/// graph of kernels for all of them that is recorded once per size of the pairs and replayed without the
/// host.
class StackedTrainer : public ResidentTrainer {
 public:
  StackedTrainer(const DeviceNetworkSpec& spec, float* theta, Products& products)
      : spec_(spec),
        theta_(theta),
        products_(products),
        stream_(products.stream()),
        parameters_(spec.shape.parameters()),
        in_one_kernel_(trains_in_one_kernel(spec)),
        centre_(spec.first),
        before_(spec.members * parameters_),
        outcome_(filled_array(kOutcomes * spec.members, 0.0)),
        gradient_(if_wanted(keeps_gradient(), spec.members * parameters_)),
        position_(
            if_wanted(spec.training.optimizer != Optimizer::kGradientDescent, spec.members * parameters_)),
        first_moment_(position_.size()),
        second_moment_(if_wanted(spec.training.optimizer == Optimizer::kAdam, position_.size())),
        step_rates_(std::span<const StepRates>(rates_of(spec))),
        first_eigenvector_(std::span<const double>(first_eigenvector(parameters_))),
        eigenvectors_(std::span<const double>(std::vector<double>(spec.members * parameters_))),
        curvatures_(std::span<const CurvatureState>(std::vector<CurvatureState>(spec.members))),
        sample_curvatures_(if_wanted(spec.training.retraining.replays(), spec.members)),
        noise_keys_(spec.noise.keys),
        noise_round_(1),
        reference_(if_wanted(spec.training.retraining.replays(), before_.size())),
        reference_gradient_(reference_.size()),
        linear_(reference_.size()) {}

  /// Waits only if curvatures are stale.
  void train(const ResidentHistory& history) override {
    on_sample_ = history.latest_extent() == TrainingExtent::kSample;
    step_count_ = on_sample_ ? spec_.training.retraining.replay_steps : spec_.training.steps;
    make_room(history);
    copy_bytes(stream_, noise_round_.data(), history.latest().noise_round, sizeof(std::uint32_t));
    copy_numbers(stream_, before_.data(), theta_, before_.size());
    const bool stale = !on_sample_ && curvature_is_stale(history.observed(), curvature_pairs_);
    if (by_curvature() && (stale || history.latest_docs_outgrow())) {
      for (std::int64_t member = 0; member < spec_.members; ++member)
        find_curvature(history, member, curvatures_.data() + member);
      curvature_pairs_ = history.observed();
    }
    find_steps(history, {0, spec_.members}, 0);
    if (in_one_kernel_) {
      start_steps(history);
    } else {
      recordings().steps.run(stream_, [&] { start_steps(history); });
    }
    ++trainings_;
  }
  bool has_failed(const Outcome& outcome, double pairs, int repeats) const override {
    return training_failed(outcome.began, outcome.ended, pairs, !spec_.training.weigh_by_ndcg, repeats);
  }
  bool can_repeat(const Outcome& outcome, int repeats) const override {
    return olrank::can_repeat(outcome.began, repeats);
  }
  void repeat(const ResidentHistory& history, std::int64_t member, int repeats) override {
    copy_numbers(stream_, theta_ + member * parameters_, before_.data() + member * parameters_,
                 parameters_);
    if (repeats == kRepeatThatFindsCurvature && by_curvature())
      find_curvature(history, member, curvatures_of(repeats).data() + member);
    --trainings_;
    find_steps(history, {member, 1}, repeats);
    ++trainings_;
    descend(history, {member, 1});
  }
  Divergence find_divergence(const ResidentHistory& history) override {
    const std::int64_t steps = step_count_;
    const auto pairs = static_cast<double>(history.observed());
    Divergence found{steps, std::nan("")};
    bool good = true;
    for (std::int64_t tried = 1; tried <= steps && good; ++tried) {
      undo();
      step_count_ = tried;
      descend(history, {0, spec_.members});
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
    step_count_ = steps;
    undo();
    OwnedStream::wait_for(stream_);
    return found;
  }
  const double* outcome() const override { return outcome_.data(); }
  bool has_steps() const override { return true; }
  std::int64_t bytes() const override {
    return bytes_of(gradient_, position_, first_moment_, second_moment_, first_eigenvector_, eigenvectors_,
                    reference_gradient_, linear_, before_, before_, reference_, rows_, scores_, partial_,
                    losses_, labels_, weights_, own_labels_, own_weights_, changes_, curvature_work_,
                    gates_, slopes_);
  }
  void save(StateWriter& state) const override {
    std::vector<double> estimates;
    for (const CurvatureState& one : curvatures_.to_host()) estimates.push_back(one.estimate);
    state.put("device.curvatures", estimates);
    state.put("device.curvature_pairs", curvature_pairs_);
    state.put("device.eigenvectors", eigenvectors_.to_host());
    state.put("device.trainings", trainings_);
    if (!replays()) return;
    state.put("device.reference", reference_.to_host());
    state.put("device.reference_gradient", reference_gradient_.to_host());
  }
  void load(StateReader& state) override {
    std::vector<double> estimates(spec_.members);
    state.get_into("device.curvatures", std::span(estimates));
    curvature_pairs_ = state.get_one<std::int64_t>("device.curvature_pairs");
    load_array(state, "device.eigenvectors", eigenvectors_);
    trainings_ = state.get_one<std::int64_t>("device.trainings");
    std::vector<CurvatureState> curvatures(estimates.size());
    for (std::size_t member = 0; member < estimates.size(); ++member)
      curvatures[member].estimate = estimates[member];
    copy_to_device(std::span<const CurvatureState>(curvatures), curvatures_.data());
    if (!replays()) return;
    load_array(state, "device.reference", reference_);
    load_array(state, "device.reference_gradient", reference_gradient_);
  }

 private:
  /// Members next to each other.
  struct Members {
    std::int64_t first = 0;
    std::int64_t count = 1;
  };
  /// All members' steps, for the latest size of the whole history or of its samples.
  struct Recordings {
    PairSizes bucket;
    std::int64_t moves = 0;  // of the pairs' arrays
    RecordedWork steps;
  };

  void make_room(const ResidentHistory& history) {
    const PairSizes& bucket = on_sample_ ? history.sample().bucket() : history.bucket();
    const std::int64_t moves = on_sample_ ? history.sample().moves() : history.moves();
    sizes_ = training_sizes(spec_.shape, spec_.members, bucket.docs, bucket.terms);
    const bool weighs = spec_.training.weigh_by_ndcg;
    if (in_one_kernel_) {
      const std::int64_t docs = on_sample_ ? bucket.docs : history.view_of_docs().docs;
      const PersistentSizes sizes = persistent_sizes(spec_.shape, spec_.members, docs, bucket.terms);
      sizes_ = {if_wanted(by_curvature(), bucket.docs * spec_.shape.factors()), sizes.scores, sizes.partial,
                sizes.losses};
      gates_.reserve(stream_, sizes.gates);
      slopes_.reserve(stream_, sizes.slopes);
    }
    bool moved = rows_.reserve(stream_, sizes_.rows);
    moved |= scores_.reserve(stream_, sizes_.scores);
    moved |= partial_.reserve(stream_, sizes_.partial);
    moved |= losses_.reserve(stream_, sizes_.losses);
    const std::int64_t of_terms = spec_.members * bucket.terms;
    moved |=
        labels_.reserve(stream_, if_wanted(weighs || on_sample_ || spec_.noise.deviation > 0.0, of_terms));
    moved |= weights_.reserve(stream_, if_wanted(weighs || on_sample_, of_terms));
    moved |= own_labels_.reserve(stream_, if_wanted(on_sample_, of_terms));
    moved |= own_weights_.reserve(stream_, if_wanted(on_sample_, of_terms));
    moved |= changes_.reserve(stream_, if_wanted(weighs, spec_.members * bucket.observations));
    curvature_work_.reserve(stream_, curvature_workspace(spec_.shape, bucket.docs));
    if (moved) {
      of_history_.steps.forget();
      of_sample_.steps.forget();
    }
    Recordings& own = recordings();
    if (bucket == own.bucket && moves == own.moves) return;
    own.bucket = bucket;
    own.moves = moves;
    own.steps.forget();
  }
  void find_steps(const ResidentHistory& history, Members members, int repeats) {
    // Adam's curvatures stay 0: its step is the rate itself.
    const double prior = by_curvature() ? prior_curvature(spec_.training.prior_weight) : 1.0;
    const double growth = curvature_growth(history, repeats);
    const double repeated = repeated_rate(rate(), repeats);
    const CurvatureState* curvatures = curvatures_of(repeats).data();
    for (std::int64_t member = members.first; member < members.first + members.count; ++member)
      step_from_curvature(stream_, curvatures + member, growth, repeated, prior, outcome_.data() + member);
  }
  /// Finds a member's κ for the pairs that it trains on.
  void find_curvature(const ResidentHistory& history, std::int64_t member, CurvatureState* state) {
    const PairHistoryView seen = on_sample_ ? history.sample().view() : history.view();
    const CurvatureTask task{.shape = spec_.shape,
                             .rows = {rows_.data(), seen.docs, spec_.shape.factors()},
                             .terms = seen.terms,
                             .count = seen.count,
                             .incidence = seen.incidence,
                             .fresh = first_eigenvector_.data()};
    tangent_factors(products_, stack({member, 1}), seen.features, task.rows, {});
    double* vector = eigenvectors_.data() + member * parameters_;
    begin_curvature(stream_, task, vector, state);
    for (int iteration = 0; iteration < kMostCurvatureIterations; iteration += kIterationsAtOnce) {
      for (int i = 0; i < kIterationsAtOnce; ++i)
        iterate_curvature(stream_, task, vector, curvature_work_.data(), state);
      CurvatureState found;
      OwnedStream::wait_for(stream_);
      copy_to_host<CurvatureState>(state, std::span(&found, 1));
      if (found.settled != 0) break;
    }
  }
  /// A repeat on a sample finds the sample's own κ; later rounds go on with that of the history.
  bool uses_curvature_of_sample(int repeats) const {
    return on_sample_ && by_curvature() && repeats >= kRepeatThatFindsCurvature;
  }
  DeviceArray<CurvatureState>& curvatures_of(int repeats) {
    return uses_curvature_of_sample(repeats) ? sample_curvatures_ : curvatures_;
  }
  /// κ is a sum over pairs, and more have come since it was found.
  double curvature_growth(const ResidentHistory& history, int repeats) const {
    if (!on_sample_ || !by_curvature() || uses_curvature_of_sample(repeats)) return 1.0;
    return static_cast<double>(history.observed()) / static_cast<double>(curvature_pairs_);
  }
  void start_steps(const ResidentHistory& history) {
    if (on_sample_) correct_sample(history);
    descend(history, {0, spec_.members});
  }
  void descend(const ResidentHistory& history, Members members) {
    const PairHistoryView seen = view(history, members);
    if (spec_.noise.deviation > 0.0 && !on_sample_) {
      perturb_labels(stream_, seen.terms, seen.count, members.count, noise_keys_.data() + members.first,
                     noise_round_.data(), spec_.noise.deviation,
                     labels_.data() + members.first * seen.count);
    }
    if (optimizer() != Optimizer::kGradientDescent) {
      begin_training(stream_, members.count * parameters_, theta_ + members.first * parameters_,
                     optimizer_state(members));
    }
    if (in_one_kernel_) {
      descend_in_one_kernel(history, members);
    } else {
      descend_by_kernels(history, members);
    }
    if (replays() && !on_sample_) note_reference(history, members);
  }
  void descend_by_kernels(const ResidentHistory& history, Members members) {
    const NetworkStack networks = stack(members);
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
    for (std::int64_t number = 1; number <= step_count_; ++number) {
      forward_history(products_, networks, seen, work);
      if (spec_.training.weigh_by_ndcg) {
        const std::int64_t observations = of_history_.bucket.observations;
        ndcg_weights(stream_, history.impressions(), history.observations(), observations, plain.count,
                     history.observation_offsets(), history.observation_items(), members.count, plain.docs,
                     work.scores, changes_.data() + members.first * observations,
                     weights_.data() + members.first * plain.count,
                     labels_.data() + members.first * plain.count);
      }
      // LambdaRank's loss is unweighted here, like the one at the end.
      if (number == 1) pair_losses(stream_, networks, plain, objective, work, began);
      GradientUse use;
      if (keeps_gradient()) {
        use.gradient = gradient_.data() + members.first * p;
      } else {
        use.theta = theta_ + members.first * p;
        use.step = outcome_.data() + members.first;
      }
      pair_gradients(products_, networks, seen, objective, work, use);
      if (keeps_gradient()) move(members, number);
    }
    forward_history(products_, networks, plain, work);
    pair_losses(stream_, networks, plain, objective, work, ended);
  }
  void descend_in_one_kernel(const ResidentHistory& history, Members members) {
    double* began = outcome_.data() + spec_.members + members.first;
    train_persistently(stream_, {.stack = stack(members),
                                 .history = view(history, members),
                                 .objective = objective(members),
                                 .optimizer = optimizer(),
                                 .steps = step_count_,
                                 .step = outcome_.data() + members.first,
                                 .rates = step_rates_.data(),
                                 .state = optimizer_state(members),
                                 .workspace = persistent_workspace(),
                                 .theta = theta_ + members.first * parameters_,
                                 .began = began,
                                 .ended = began + spec_.members});
  }
  StackedObjective objective(Members members) const {
    const std::int64_t first = members.first * parameters_;
    return {1.0, spec_.training.prior_weight, centre_.data() + first,
            on_sample_ ? linear_.data() + first : nullptr};
  }
  PersistentWorkspace persistent_workspace() {
    return {scores_.data(), partial_.data(), gates_.data(), slopes_.data(), losses_.data()};
  }
  /// Keeps θ as the reference of later samples, with the gradient of the data there.
  void note_reference(const ResidentHistory& history, Members members) {
    const std::int64_t first = members.first * parameters_;
    copy_numbers(stream_, reference_.data() + first, theta_ + first, members.count * parameters_);
    find_reference_gradient(view(history, members), members, reference_gradient_.data() + first);
  }
  /// Adds the round's own pairs to the gradient at the reference, and finds the sample's linear term.
  void correct_sample(const ResidentHistory& history) {
    const Members all{0, spec_.members};
    const PairHistoryView seen = view(history, all);
    split_sample(stream_, history.sample().sources(), seen.count, spec_.members, noise_keys_.data(),
                 noise_round_.data(), spec_.noise.deviation,
                 {own_weights_.data(), own_labels_.data(), weights_.data(), labels_.data()});
    PairHistoryView own = seen;
    own.features = history.sample().own_features();
    own.weights = own_weights_.data();
    own.labels = own_labels_.data();
    find_reference_gradient(own, all, linear_.data());
    add_finite_gradient(stream_, spec_.members, parameters_, linear_.data(), reference_gradient_.data());
    find_reference_gradient(seen, all, linear_.data());
    subtract_from_whole(stream_, spec_.members, parameters_, reference_gradient_.data(), linear_.data());
  }
  /// gradient = that of the data at the reference.
  void find_reference_gradient(const PairHistoryView& pairs, Members members, double* gradient) {
    NetworkStack networks = stack(members);
    networks.theta = reference_.data() + members.first * parameters_;
    if (in_one_kernel_) {
      float* theta = reference_.data() + members.first * parameters_;
      return train_persistently(stream_, {.stack = networks,
                                          .history = pairs,
                                          .steps = 1,
                                          .step = outcome_.data() + members.first,
                                          .gradient = gradient,
                                          .workspace = persistent_workspace(),
                                          .theta = theta});
    }
    const TrainingWorkspace work = workspace(members);
    forward_history(products_, networks, pairs, work);
    pair_gradients(products_, networks, pairs, {}, work, {.gradient = gradient});
  }
  void undo() { copy_numbers(stream_, theta_, before_.data(), before_.size()); }
  void move(Members members, std::int64_t number) {
    const std::int64_t first = members.first * parameters_;
    const Step kind = optimizer() == Optimizer::kAdam       ? Step::kAdam
                      : optimizer() == Optimizer::kNesterov ? Step::kNesterov
                                                            : Step::kDescent;
    optimizer_step(stream_, kind, members.count, parameters_, step_rates_.data() + number - 1,
                   gradient_.data() + first, outcome_.data() + members.first, optimizer_state(members),
                   theta_ + first);
  }
  bool replays() const { return reference_.size() > 0; }
  Optimizer optimizer() const {
    return on_sample_ ? optimizer_of_replay(spec_.training.optimizer) : spec_.training.optimizer;
  }
  bool by_curvature() const { return spec_.training.optimizer != Optimizer::kAdam; }
  Recordings& recordings() { return on_sample_ ? of_sample_ : of_history_; }
  bool keeps_gradient() const { return spec_.training.optimizer != Optimizer::kGradientDescent; }

  NetworkStack stack(Members members) const {
    return {spec_.shape, theta_ + members.first * parameters_, members.count, spec_.members};
  }
  TrainingWorkspace workspace(Members members) {
    const auto place = [&](auto& array, std::int64_t size) {
      return array.data() + members.first * (size / spec_.members);
    };
    return {place(rows_, sizes_.rows), place(scores_, sizes_.scores), place(partial_, sizes_.partial),
            place(losses_, sizes_.losses)};
  }
  PairHistoryView view(const ResidentHistory& history, Members members) {
    PairHistoryView view = on_sample_       ? history.sample().view()
                           : in_one_kernel_ ? history.view_of_docs()
                                            : history.view();
    if (on_sample_) view.weights = weights_.data() + members.first * view.count;
    if (on_sample_ || spec_.noise.deviation > 0.0)
      view.labels = labels_.data() + members.first * view.count;
    return view;
  }
  OptimizerState optimizer_state(Members members) {
    const std::int64_t first = members.first * parameters_;
    return {position_.data() + first, first_moment_.data() + first,
            second_moment_.size() > 0 ? second_moment_.data() + first : nullptr};
  }
  double rate() const {
    return decayed_rate(spec_.training.learning_rate, spec_.training.learning_rate_decay, trainings_);
  }

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

  // These tell of the latest training.
  bool on_sample_ = false;
  std::int64_t step_count_ = 0;

  std::int64_t curvature_pairs_ = 0;  // n when the curvatures were found
  std::int64_t trainings_ = 0;
};

}  // namespace

std::unique_ptr<ResidentTrainer> make_stacked_trainer(const DeviceNetworkSpec& spec, float* theta,
                                                      Products& products) {
  return std::make_unique<StackedTrainer>(spec, theta, products);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
