#include "models/neural/device_ranker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/ops/pair_width.h"
#include "models/neural/ensemble_tensors.h"
#include "models/neural/mini_batch_trainer.h"
#include "models/neural/ranker_network.h"
#include "models/neural/width_comparison.h"
#include "models/posterior/posterior_plan.h"
#include "models/posterior_settings.h"
#include "models/score_order.h"

namespace olrank {
namespace {

constexpr std::int64_t kUsualPairs = 4;  // of a round, for the choice of form

bool is_ensemble(const RankerSettings& settings) {
  return settings.kind == RankerKind::kP2NeurRank;
}

DeviceCovariance full_form(const PosteriorSettings& settings) {
  return settings.form == CovarianceForm::kPrimal ? DeviceCovariance::kPrimal : DeviceCovariance::kDual;
}

DeviceCovariance device_covariance(const PosteriorSettings& settings) {
  switch (settings.covariance) {
    case Covariance::kFull:
      return full_form(settings);
    case Covariance::kDiagonal:
      return DeviceCovariance::kDiagonal;
    case Covariance::kDiagonalOfInverse:
      return DeviceCovariance::kDiagonalOfInverse;
    case Covariance::kNone:
      break;
  }
  return DeviceCovariance::kNone;
}

/// Where the members start, and which draws are whose.
struct FirstMembers {
  std::vector<float> theta;
  std::vector<PhiloxKey> noise_keys;
  std::vector<PhiloxKey> batch_keys;  // and whose batches
};

FirstMembers first_members(const RankerSettings& settings, const NetworkShape& shape,
                           const TrialKeys& keys) {
  FirstMembers first;
  if (!is_ensemble(settings)) {
    first.theta = first_parameters(settings.network, shape, keys.key(Purpose::kInitialisation));
    first.batch_keys = {keys.key(Purpose::kBatch)};
    return first;
  }
  for (std::int64_t number = 0; number < settings.posterior.members; ++number) {
    const auto member = static_cast<std::uint64_t>(number);
    const auto theta =
        first_parameters(settings.network, shape, keys.key(Purpose::kInitialisation, member));
    first.theta.insert(first.theta.end(), theta.begin(), theta.end());
    first.noise_keys.push_back(keys.key(Purpose::kLabelNoise, member));
    first.batch_keys.push_back(keys.key(Purpose::kBatch, member));
  }
  return first;
}

DeviceNetworkSpec network_spec(const RankerSettings& settings, const NetworkShape& shape,
                               const DeviceHome& home, const FirstMembers& first) {
  DeviceNetworkSpec spec;
  spec.device = home.device;
  spec.shape = shape;
  spec.first = first.theta;
  spec.train = home.train;
  spec.most_docs = home.most_docs;
  spec.eval_docs = home.eval_docs;
  spec.lambda = settings.posterior.lambda;
  spec.scale = covariance_scale(settings.network);
  spec.certainty = certainty_policy(settings);
  spec.optimizer = settings.trainer.optimizer;
  spec.steps = settings.trainer.steps;
  spec.learning_rate = settings.trainer.learning_rate;
  spec.learning_rate_decay = settings.trainer.learning_rate_decay;
  spec.precision = settings.trainer.precision;
  spec.stop_gradient_norm = settings.trainer.stop_gradient_norm;
  spec.prior_weight = 0.5 * prior_scale(settings.network) * settings.posterior.lambda;
  if (settings.trainer.loss == LossForm::kMean) {
    check_batch_optimizer(settings.trainer);
    spec.mini_batches = {settings.trainer.epochs, settings.trainer.batch, settings.posterior.lambda};
  }
  spec.weigh_by_ndcg = settings.kind == RankerKind::kOlLambdaRank;
  spec.schedule = settings.posterior.member_schedule;
  if (is_ensemble(settings)) {
    spec.by_vote = true;
    spec.members = settings.posterior.members;
    spec.noise = std::sqrt(settings.posterior.noise_variance);
    spec.noise_keys = first.noise_keys;
  } else {
    spec.covariance = device_covariance(settings.posterior);
    if (settings.posterior.has_shadow()) spec.shadow = full_form(settings.posterior);
  }
  return spec;
}

}  // namespace

std::optional<std::string> why_not_on_device(const RankerSettings& settings) {
  switch (settings.kind) {
    case RankerKind::kOlRankNet:
    case RankerKind::kOlLambdaRank:
    case RankerKind::kP2NeurRank:
      break;
    default:
      return fmt::format("a '{}' has no device implementation", name_of(settings.kind));
  }
  constexpr std::int64_t kMostLayers = 16;
  if (settings.network.depth > kMostLayers)
    return fmt::format("kernels take at most {} layers", kMostLayers);
  return std::nullopt;
}

DeviceRanker::DeviceRanker(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                           std::int64_t cutoff, const DeviceHome& home, const MakeNetwork& make_network)
    : settings_(settings),
      cutoff_(cutoff),
      home_(home),
      batch_key_(keys.key(Purpose::kBatch)),
      shape_(network_shape(settings.network, features)),
      members_(is_ensemble(settings) ? settings.posterior.members : 1),
      history_(features, settings.kind == RankerKind::kOlLambdaRank),
      list_(settings.explore.list, settings.explore.refine, keys.key(Purpose::kList)) {
  FirstMembers first = first_members(settings, shape_, keys);
  if (trains_by_batches()) batch_keys_ = std::move(first.batch_keys);
  network_ = make_network(network_spec(settings, shape_, home, first));
}

DeviceQuery DeviceRanker::place_of(const QueryDocs& query) const {
  const float* expected = home_.train.values + query.first_doc * home_.train.features;
  if (!query.numbers.empty() || query.features.values != expected) {
    throw InvalidArgument(
        fmt::format("Ranker '{}' lives on a device with the queries of its training part and knows no "
                    "others: use --device cpu.",
                    settings_.name));
  }
  return {query.first_doc, query.docs()};
}

RankedList DeviceRanker::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  const DeviceOrders found = network_->look(place_of(query));
  network_->add_seconds(context.clock);
  described_ = false;
  const auto measured = context.clock.measure("rank");
  orders_.assign(query.docs(), found.certain);
  RankedList list = list_.make(found.by_score, orders_, round, cutoff_);
  if (has_shadow()) {
    const auto shown = static_cast<std::size_t>(std::min(cutoff_, query.docs()));
    list.turned_decisions = compare_with_shadow(context.execution, list.docs.first(shown));
    list.width_ratios = width_ratios_;
    network_->add_seconds(context.clock);
  }
  return list;
}

bool DeviceRanker::has_shadow() const {
  return !is_ensemble(settings_) && settings_.posterior.has_shadow();
}

Tally DeviceRanker::compare_with_shadow(ExecutionContext& context, std::span<const std::int32_t> shown) {
  const auto count = static_cast<std::int64_t>(shown.size());
  for (;;) {
    const DeviceComparison found = network_->compare(shown);
    exact_sq_.assign(found.exact_m.begin(), found.exact_m.end());
    const WidthHealth health = pair_width_sq(context, count, exact_sq_.data(), exact_sq_.data());
    network_->judge_shadow(health.lost == 0);
    if (health.lost > 0) continue;  // made anew

    const std::size_t docs = found.scores.size();
    shown_scores_.clear();
    own_sq_.clear();
    for (const std::int32_t i : shown) {
      shown_scores_.push_back(double{found.scores[static_cast<std::size_t>(i)]});
      for (const std::int32_t j : shown)
        own_sq_.push_back(found.own_m[static_cast<std::size_t>(std::max(i, j)) * docs +
                                      static_cast<std::size_t>(std::min(i, j))]);
    }
    pair_width_sq(context, count, own_sq_.data(), own_sq_.data());
    return compare_widths({found.rule, shown_scores_, own_sq_, exact_sq_}, width_ratios_);
  }
}

DeviceLesson DeviceRanker::lesson_of(const Feedback& feedback, std::int64_t known_docs) {
  DeviceLesson lesson;
  lesson.round = feedback.round;
  lesson.query = place_of(feedback.query);
  lesson.pairs = pairs_;
  lesson.observed = history_.observed();
  lesson.new_docs = history_.doc_numbers().subspan(static_cast<std::size_t>(known_docs));
  const auto seen = history_.observations().last(loss_pairs_.pairs.size());
  terms_.clear();
  for (const PairObservation& one : seen)
    terms_.push_back({one.term, history_.terms()[static_cast<std::size_t>(one.term)]});
  lesson.terms = terms_;
  const bool by_lists = settings_.kind == RankerKind::kOlLambdaRank;
  if (by_lists || trains_by_batches()) lesson.observations = seen;
  if (trains_by_batches()) {
    order_batches(feedback.round);
    lesson.order = order_;
  }
  if (by_lists) {
    lesson.examined = history_.latest_rows();
    lesson.clicks = history_.latest_clicks();
  }
  return lesson;
}

void DeviceRanker::order_batches(std::uint32_t round) {
  const auto observed = static_cast<std::size_t>(history_.observed());
  const auto epochs = static_cast<std::size_t>(settings_.trainer.epochs);
  order_.resize(batch_keys_.size() * epochs * observed);
  epoch_order_.resize(observed);
  auto out = order_.begin();
  for (const PhiloxKey& key : batch_keys_) {
    std::iota(epoch_order_.begin(), epoch_order_.end(), 0);
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
      shuffle_epoch(key, round, static_cast<std::int64_t>(epoch), epoch_order_);
      out = std::copy(epoch_order_.begin(), epoch_order_.end(), out);
    }
  }
}

LearnReport DeviceRanker::learn(RoundContext& context, const Feedback& feedback) {
  preference_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  steps_.clear();
  if (pairs_.empty()) return {};
  const std::int64_t known_docs = history_.docs();
  const std::int64_t known_pairs = taught_;
  taught_ += static_cast<std::int64_t>(pairs_.size());
  loss_pairs(settings_.feedback.pairs, feedback.shown, feedback.clicks, pairs_, loss_pairs_);
  history_.add(feedback, loss_pairs_.pairs, loss_pairs_.weight);
  network_->learn(lesson_of(feedback, known_docs));
  if (network_->full_form() == "dual") {
    const double dual = dual_cost(shape_, known_pairs, feedback.query.docs(), kUsualPairs).operations;
    const double primal = primal_cost(shape_, known_pairs, feedback.query.docs(), kUsualPairs).operations;
    excess_ += std::max(0.0, dual - primal);
    choose_form();
  }
  if (described_) steps_ = network_->steps();
  network_->add_seconds(context.clock);
  return {pairs_, steps_};
}

/// As FullPosterior on the CPU: from pairs to A⁻¹ once that would have paid, or where pairs no longer fit.
void DeviceRanker::choose_form() {
  const std::int64_t n = taught_;
  const double needed = dual_cost(shape_, n, 0, 0).bytes;
  const bool overflows = home_.memory > 0 && needed > static_cast<double>(home_.memory);
  const bool primal_fits =
      home_.memory <= 0 || primal_cost(shape_, n, 0, 0).bytes + needed <= static_cast<double>(home_.memory);
  const bool may_change = settings_.posterior.form == CovarianceForm::kAuto && primal_fits;
  if (overflows && !may_change) {
    throw Error(fmt::format(
        "The covariance of {} pairs takes {:.1f} GB on the device, and {:.1f} GB may be used: choose the "
        "diagonal covariance or fewer rounds.",
        n, needed * 1e-9, static_cast<double>(home_.memory) * 1e-9));
  }
  if (may_change && (overflows || excess_ > conversion_operations(shape_, n))) network_->go_primal();
}

void DeviceRanker::describe(const QueryDocs& query, bool full, RoundDetail& detail) {
  described_ = true;
  const auto docs = static_cast<std::size_t>(query.docs());
  std::vector<float> scores(docs);
  detail.width_sq.resize(full && !is_ensemble(settings_) ? docs * docs : 0);
  network_->describe(scores, detail.width_sq);
  detail.scores.assign(scores.begin(), scores.end());
  if (!full) return;
  detail.theta = member_thetas();
  // The answer to rank() went with what was asked since.
  const DeviceOrders found = network_->look(place_of(query));
  orders_.assign(query.docs(), found.certain);
  write_certain_matrix(orders_, found.by_score, query.docs(), detail.certain);
}

void DeviceRanker::score(ExecutionContext&, FeatureMatrix docs, std::span<float> scores) const {
  network_->begin_scores(docs);
  network_->finish_scores(scores);
}

bool DeviceRanker::begin_scores(FeatureMatrix docs) {
  network_->begin_scores(docs);
  return true;
}

std::int64_t DeviceRanker::parameters() const {
  return shape_.parameters() * members_;
}

std::vector<std::vector<float>> DeviceRanker::member_thetas() const {
  const std::vector<float> all = network_->theta();
  const auto size = static_cast<std::ptrdiff_t>(shape_.parameters());
  std::vector<std::vector<float>> thetas;
  for (auto begin = all.begin(); begin != all.end(); begin += size)
    thetas.emplace_back(begin, begin + size);
  return thetas;
}

ModelTensors DeviceRanker::model() const {
  const auto thetas = member_thetas();
  if (!is_ensemble(settings_)) return network_tensors(settings_.network, shape_, thetas.front());
  const std::vector<std::span<const float>> views(thetas.begin(), thetas.end());
  return ensemble_tensors(settings_.network, shape_, views);
}

std::vector<RankerFigure> DeviceRanker::figures(ExecutionContext&) const {
  const DeviceHealth health = network_->health();
  const RankerFigure device_bytes{"device_bytes", static_cast<double>(health.device_bytes), true};
  if (is_ensemble(settings_)) return {device_bytes};
  return {{"drift", health.drift},
          {"negative_widths", static_cast<double>(health.negative_widths)},
          {"posterior_bytes", static_cast<double>(health.bytes), true},
          device_bytes};
}

void DeviceRanker::save(StateWriter& state) const {
  history_.save(state);
  state.put("device.taught", taught_);
  state.put("device.excess", excess_);
  network_->save(state);
}

void DeviceRanker::load(StateReader& state) {
  history_.load(state);
  taught_ = state.get_one<std::int64_t>("device.taught");
  excess_ = state.get_one<double>("device.excess");
  const DocumentHistory::Lists lists = history_.lists();
  network_->load(state,
                 {history_.features(), history_.terms(), history_.observed(), history_.observations(),
                  history_.doc_numbers(), lists.first_doc, lists.first_pair, lists.rows, lists.clicks});
}

}  // namespace olrank
