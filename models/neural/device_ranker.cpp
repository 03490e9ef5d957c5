#include "models/neural/device_ranker.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/throw_error.h"
#include "models/neural/network_trainer.h"
#include "models/neural/ranker_network.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {
namespace {

bool is_ensemble(const RankerSettings& settings) {
  return row_of(settings.kind).is_ensemble();
}

/// θ₀ of each member, and the keys of its draws.
struct FirstMembers {
  std::vector<float> theta;
  std::vector<PhiloxKey> noise_keys;
  std::vector<PhiloxKey> batch_keys;  // of mini-batches
  std::vector<PhiloxKey> restart_keys;
};

FirstMembers first_members(const RankerSettings& settings, const NetworkShape& shape,
                           const TrialKeys& keys) {
  FirstMembers first;
  if (!is_ensemble(settings)) {
    first.theta = first_parameters(settings.network, shape, keys.key(Purpose::kInitialisation));
    first.batch_keys = {keys.key(Purpose::kBatch)};
    first.restart_keys = {keys.key(Purpose::kRestart)};
    return first;
  }
  const auto members = static_cast<std::uint64_t>(settings.posterior.members);
  for (std::uint64_t member = 0; member < members; ++member) {
    const auto theta =
        first_parameters(settings.network, shape, keys.key(Purpose::kInitialisation, member));
    first.theta.insert(first.theta.end(), theta.begin(), theta.end());
    first.noise_keys.push_back(keys.key(Purpose::kLabelNoise, member));
    first.batch_keys.push_back(keys.key(Purpose::kBatch, member));
    first.restart_keys.push_back(keys.key(Purpose::kRestart, member));
  }
  return first;
}

DeviceTrainingSpec training_spec(const RankerSettings& settings) {
  const TrainerSettings& trainer = settings.trainer;
  DeviceTrainingSpec spec;
  spec.optimizer = trainer.optimizer;
  spec.steps = trainer.steps;
  spec.learning_rate = trainer.learning_rate;
  spec.learning_rate_decay = trainer.learning_rate_decay;
  spec.prior_weight = prior_weight(settings.network, settings.posterior.lambda);
  if (trainer.loss == LossForm::kMean) {
    check_batch_optimizer(trainer);
    spec.mini_batches = {trainer.epochs, trainer.batch, settings.posterior.lambda};
  }
  spec.retraining = retraining_rule(trainer);
  spec.weigh_by_ndcg = row_of(settings.kind).weighs_by_ndcg;
  spec.kernel = trainer.training_kernel;
  return spec;
}

/// Lists that are made with one wait; their answers lie side by side on the host.
constexpr std::size_t kListsAtOnce = 16;

/// Documents of a query that a ranker has room for before it meets a longer one.
constexpr std::int64_t kUsualDocs = 128;

DeviceNetworkSpec network_spec(const RankerSettings& settings, const NetworkShape& shape,
                               const RankerDevice& device, const FirstMembers& first, std::int64_t cutoff) {
  DeviceNetworkSpec spec;
  spec.device = device.gpu;
  spec.shape = shape;
  spec.first = first.theta;
  const bool any = device.train.docs == 0;
  spec.data = {device.train, any ? std::max(kUsualDocs, cutoff) : device.most_docs, device.eval_docs};
  spec.certainty.policy = certainty_policy(settings);
  spec.posterior = posterior_spec(settings, shape);
  spec.training = training_spec(settings);
  if (is_ensemble(settings)) {
    spec.members = settings.posterior.members;
    spec.certainty.by_vote = true;
    spec.noise = {std::sqrt(settings.posterior.noise_variance), first.noise_keys};
  }
  return spec;
}

}  // namespace

DeviceRanker::DeviceRanker(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
                           std::int64_t cutoff, const RankerDevice& device, const MakeNetwork& make_network)
    : settings_(settings),
      device_(device),
      keys_(keys),
      batch_key_(keys.key(Purpose::kBatch)),
      shape_(network_shape(settings.network, features)),
      history_(features, history_content(settings)),
      schedule_(retraining_rule(settings.trainer)),
      replay_key_(keys.key(Purpose::kReplay)),
      policy_(shape_, settings.posterior.form, {}),
      list_(settings.explore, settings.fair, keys, cutoff) {
  FirstMembers first = first_members(settings, shape_, keys);
  if (trains_by_batches()) batch_keys_ = std::move(first.batch_keys);
  restart_keys_ = std::move(first.restart_keys);
  if (settings.trainer.restart == Restart::kFirst) start_ = first.theta;
  const DeviceNetworkSpec spec = network_spec(settings, shape_, device, first, cutoff);
  has_shadow_ = spec.posterior.has_shadow;
  if (device.batch) seat_ = device.batch->take_seat();
  network_ = make_network(spec);
  policy_ =
      FormPolicy(shape_, settings.posterior.form,
                 room_on_device(settings, {shape_.inputs, shape_}, device, network_->grows_in_place()));
}

DeviceQuery DeviceRanker::place_of(const QueryDocs& query) const {
  if (const DeviceDocs* there = query.features.on_device)
    return {0, query.docs(), there->values(), there->number()};
  const FeatureMatrix& train = device_.train;
  const bool is_known = train.docs > 0 && query.numbers.empty() &&
                        query.features.values == train.values + query.first_doc * train.features;
  if (is_known) return {query.first_doc, query.docs()};
  return {0, query.docs(), query.features.values};
}

/// The new documents of the history, by where the device finds them.
std::span<const std::int64_t> DeviceRanker::places_of(const QueryDocs& query,
                                                      std::span<const std::int64_t> numbers) {
  if (place_of(query).handed == nullptr) return numbers;
  new_docs_.clear();
  for (const std::int64_t number : numbers) {
    std::int32_t doc = 0;
    while (query.number(doc) != number) ++doc;
    new_docs_.push_back(doc);
  }
  return new_docs_;
}

template <typename Call>
auto DeviceRanker::validating(const Call& call) {
  try {
    return call();
  } catch (const NumericError&) {
    if (trained_extent_ == TrainingExtent::kHistory) schedule_.set_latest({});
    throw;
  }
}

/// The history of the host is ahead of the device's after an update that the device did not take.
void DeviceRanker::require_whole() const {
  if (!broken_) return;
  throw_error<Error>("Ranker '{}' has lost an update on the GPU: continue from its last saved state.",
                     settings_.name);
}

RankedList DeviceRanker::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  require_whole();
  const DeviceQuery place = place_of(query);
  const DeviceOrders orders = validating([&] { return network_->score_query(place); });
  network_->add_seconds(context.clock);
  described_ = false;
  const auto measured = context.clock.measure("rank");
  list_.orders().assign(query.docs(), orders.certain);
  RankedList list = list_.make(orders.by_score, round, query.fair);
  if (has_shadow_) {
    const DeviceComparison found = network_->compare(context.execution, list_.shown(list));
    list.turned_decisions =
        compare_widths({found.rule, found.scores, found.own_sq, found.exact_sq}, width_ratios_);
    list.width_ratios = width_ratios_;
    network_->add_seconds(context.clock);
  }
  return list;
}

void DeviceRanker::make_lists(ExecutionContext&, std::span<ListRequest> requests) {
  require_whole();
  described_ = false;
  for (; !requests.empty(); requests = requests.subspan(std::min(requests.size(), kListsAtOnce)))
    make_some_lists(requests.first(std::min(requests.size(), kListsAtOnce)));
}

void DeviceRanker::make_some_lists(std::span<ListRequest> requests) {
  asked_.clear();
  for (const ListRequest& one : requests) asked_.push_back({0, one.task->docs.docs, one.task->docs.values});
  try {
    const auto found = validating([&] { return network_->score_queries(asked_); });
    for (std::size_t i = 0; i < requests.size(); ++i) {
      try {
        if (found[i].bad >= 0) throw_bad_score(found[i].bad);
        if (found[i].lost > 0) throw_lost_list_widths(found[i].lost, requests[i].task->docs.docs);
        make_list(found[i], *requests[i].task, *requests[i].ranking);
      } catch (const NumericError&) {
        requests[i].failure = std::current_exception();
      }
    }
  } catch (const OutOfDeviceMemory&) {
    if (requests.size() == 1) {
      requests.front().failure = std::current_exception();
      return;
    }
    for (ListRequest& one : requests) make_some_lists({&one, 1});  // whichever it was, the others are made
  }
}

void DeviceRanker::make_list(const DeviceScores& found, const RankingTask& task, Ranking& ranking) const {
  ranking.scores.assign(found.scores.begin(), found.scores.end());
  ranking.by_score.assign(found.orders.by_score.begin(), found.orders.by_score.end());
  CertainList list = CertainList::of(task, settings_.explore, settings_.fair, keys_);
  list.orders().assign(task.docs.docs, found.orders.certain);
  list.hand_over(list.make(ranking.by_score, task.round, task.fair), ranking);
}

DeviceUpdate DeviceRanker::update_of(const Feedback& feedback, std::int64_t known_docs) {
  DeviceUpdate update;
  update.round = feedback.round;
  update.query = place_of(feedback.query);
  update.observed = history_.observed();
  choose_extent(update);
  if (trains_by_batches()) {
    order_batches(feedback.round);
    update.order = order_;
  }
  if (pairs_.empty()) return update;
  update.pairs = pairs_;
  const auto numbers = history_.doc_numbers().subspan(known_docs);
  update.new_docs = places_of(feedback.query, numbers);
  update.docs_outgrow = history_.latest_docs_outgrow();
  const auto seen = history_.latest();
  terms_.clear();
  for (const PairObservation& one : seen) {
    if (!terms_.empty() && terms_.back().index == one.term) continue;  // a copy of the pair before
    terms_.push_back({one.term, history_.terms()[one.term]});
  }
  update.terms = terms_;
  const bool by_lists = row_of(settings_.kind).weighs_by_ndcg;
  if (by_lists || trains_by_batches()) update.observations = seen;
  if (by_lists) {
    update.doc_numbers = numbers;
    update.examined = history_.latest_rows();
    update.clicks = history_.latest_clicks();
  }
  return update;
}

void DeviceRanker::choose_extent(DeviceUpdate& update) {
  update.extent = schedule_.extent(history_.sizes());
  update.noise_round = update.extent == TrainingExtent::kHistory ? update.round : noise_round_;
  if (update.extent == TrainingExtent::kHistory) {
    choose_start(update.round);
    update.start = start_;
  }
  if (update.extent != TrainingExtent::kSample) return;
  sample_.draw(history_, replay_key_, update.round, schedule_.rule().replay);
  sampled_rows_.assign(sample_.rows().begin(), sample_.rows().end());
  update.sample = {sampled_rows_, sample_.terms(), sample_.sources()};
}

void DeviceRanker::choose_start(std::uint32_t round) {
  if (settings_.trainer.restart != Restart::kFresh) return;
  start_.clear();
  for (const PhiloxKey& key : restart_keys_) {
    const auto theta = first_parameters(settings_.network, shape_, key_of_round(key, round));
    start_.insert(start_.end(), theta.begin(), theta.end());
  }
}

void DeviceRanker::teach(const DeviceUpdate& update) {
  network_->learn(update);
  trained_extent_ = update.extent;
  if (update.extent != TrainingExtent::kHistory) return;
  schedule_.trained(history_.sizes());
  noise_round_ = update.round;
}

bool DeviceRanker::trains_without_pairs() const {
  return is_ensemble(settings_) && schedule_.rule().retrain == Retrain::kEveryRound &&
         history_.observed() > 0;
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
  require_whole();
  preference_pairs(settings_.feedback, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  loss_pairs(settings_.feedback, feedback, batch_key_, pairs_, loss_);
  if (loss_.pairs.empty()) pairs_.clear();  // as CertainOrderRanker
  steps_.clear();
  if (pairs_.empty() && !trains_without_pairs()) return {};
  validating([&] { network_->settle(); });  // before the history has what the device may refuse
  const std::int64_t known_docs = history_.docs();
  const auto added = std::ssize(pairs_);
  const bool to_primal =
      network_->has_dual_form() && policy_.switches(observed_pairs_, added, feedback.query.docs());
  observed_pairs_ += added;
  if (!pairs_.empty()) history_.add(feedback, loss_.pairs, loss_.weight);
  const DeviceUpdate update = update_of(feedback, known_docs);
  broken_ = true;  // until the device has it
  validating([&] {
    teach(update);
    if (to_primal) network_->switch_to_primal();
    broken_ = false;
    // Nothing that is asked between rounds may find that the training failed: lists leave no trace.
    if (update.query.handed != nullptr) network_->settle();
    if (described_ && update.extent != TrainingExtent::kNothing) steps_ = network_->steps();
  });
  network_->add_seconds(context.clock);
  return {pairs_, steps_};
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
  // Calls since rank() have overwritten its orders.
  const DeviceOrders found = network_->score_query(place_of(query));
  list_.orders().assign(query.docs(), found.certain);
  list_.write_matrix(found.by_score, detail.certain);
}

void DeviceRanker::score(ExecutionContext&, FeatureMatrix docs, std::span<float> scores) const {
  network_->begin_scores(docs);
  network_->finish_scores(scores);
}

bool DeviceRanker::begin_scores(FeatureMatrix docs) {
  validating([&] { network_->begin_scores(docs); });
  return true;
}

std::int64_t DeviceRanker::parameters() const {
  return shape_.parameters() * (is_ensemble(settings_) ? settings_.posterior.members : 1);
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
  const NetworkModel model(settings_.network, shape_.inputs);
  return is_ensemble(settings_) ? ensemble_tensors(model, thetas) : model.tensors(thetas.front());
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

void DeviceRanker::save_for_lists(StateWriter&) const {
  throw Error("A ranker on a GPU makes its lists itself: no other process can rank for it.");
}

void DeviceRanker::fields(StateFields& state) {
  state.part(history_);
  state.numbers("device.taught", observed_pairs_);
  state.number("device.excess", policy_.excess(), [&](double excess) { policy_.set_excess(excess); });
  schedule_fields(state, schedule_, noise_round_);
  if (!state.reads()) return network_->save(state.writer());
  const DocumentHistory::Lists lists = history_.lists();
  network_->load(state.reader(),
                 {history_.features(), history_.terms(), history_.observed(), history_.observations(),
                  history_.doc_numbers(), lists.first_doc, lists.first_pair, lists.rows, lists.clicks});
}

}  // namespace olrank
