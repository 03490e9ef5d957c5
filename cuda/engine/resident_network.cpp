#include "core/throw_error.h"
#include "cuda/engine/device_network.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/online/retraining.h"
#include "core/ops/covariance.h"
#include "core/runtime/progress.h"
#include "cuda/engine/query_view.h"
#include "cuda/engine/resident_history.h"
#include "cuda/engine/resident_trainer.h"
#include "cuda/engine/watched_posterior.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/runtime/address_range.h"
#include "cuda/runtime/products.h"
#include "cuda/runtime/profiled_range.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// The seconds of the stages of a round on the device.
class Timeline {
 public:
  /// Work started from now on belongs to this stage; to none if the name is empty.
  void mark(Stream stream, std::string_view stage) {
    range_.begin(stage);
    if (used_ == marks_.size()) marks_.emplace_back();
    marks_[used_].stage = stage;
    marks_[used_].event.record(stream);
    ++used_;
  }
  /// Adds the seconds of all stages and resets them; all marks must have passed.
  void collect(StageClock& clock) {
    for (std::size_t i = 0; i + 1 < used_; ++i) {
      if (!marks_[i].stage.empty())
        clock.add(marks_[i].stage, marks_[i + 1].event.seconds_since(marks_[i].event));
    }
    used_ = 0;
  }

 private:
  struct Mark {
    std::string_view stage;
    Event event;
  };
  ProfiledRange range_;
  std::vector<Mark> marks_;
  std::size_t used_ = 0;
};

constexpr std::int64_t kScoredAtOnce = 8192;  // documents

/// A grid's second dimension, along which some kernels take documents, ends here.
constexpr std::int64_t kMostDocs = 65'535;

void check_docs(std::int64_t docs) {
  if (docs <= kMostDocs) return;
  throw_error<InvalidArgument>(
      "A query has {} documents, but a ranker on a GPU takes at most {}: use --device cpu.", docs,
      kMostDocs);
}

/// Checks sizes and selects the calling thread's device, before anything is made on it.
const DeviceNetworkSpec& on_device_of(const DeviceNetworkSpec& spec) {
  check_docs(spec.data.most_docs);
  use_device(spec.device);
  return spec;
}

std::span<const float> values_of(const FeatureMatrix& matrix) {
  return {matrix.values, static_cast<std::size_t>(matrix.docs * matrix.features)};
}

ResidentHistory::Keeps kept_by(const DeviceNetworkSpec& spec) {
  if (spec.training.weigh_by_ndcg) return ResidentHistory::Keeps::kLists;
  return spec.training.mini_batches ? ResidentHistory::Keeps::kObservations
                                    : ResidentHistory::Keeps::kTerms;
}

std::unique_ptr<ResidentTrainer> make_trainer(const DeviceNetworkSpec& spec, float* theta,
                                              Products& products) {
  if (spec.training.mini_batches) return make_batch_trainer(spec, theta, products);
  return make_stacked_trainer(spec, theta, products);
}

/// Networks whose rounds run on the device: one stream, and one wait per round, when orders come down.
class ResidentNetwork : public DeviceNetwork {
 public:
  explicit ResidentNetwork(const DeviceNetworkSpec& spec)
      : spec_(on_device_of(spec)),
        products_(plans_, stream_.get()),
        train_(spec.device, spec.data.train),
        eval_docs_(spec.device, spec.data.eval_docs),
        theta_(spec.first),
        rule_(std::span<const CertaintyRule>(std::array{spec.certainty.policy.rule(0.0, 0.0)})),
        view_(spec, train_.data(), spec.data.most_docs),
        history_(spec.shape.inputs, kept_by(spec), spec.data.most_docs,
                 spec.training.retraining.replays() ? spec.training.retraining.replay : 0),
        posterior_(spec.posterior, products_),
        trainer_(make_trainer(spec, theta_.data(), products_)),
        eval_products_(plans_, eval_stream_.get()),
        theta_copy_(theta_.size()) {
    if (spec.posterior.has_shadow) shadow_.emplace(spec.posterior.shadow(), products_);
  }
  ~ResidentNetwork() override { wait_before_freeing(spec_.device, {&stream_, &eval_stream_}); }

  DeviceOrders score_query(DeviceQuery query) override {
    use_device(spec_.device);
    do {
      start_scoring(query);
      const ProfiledRange range("fetch");
      view_.fetch(stream_.get());
      if (query.handed != nullptr) view_.fetch_scores(stream_.get(), query.docs);
      stream_.wait_in_step();
      timeline_.collect(waited_);
    } while (validate_or_retry());
    if (const std::int32_t bad = view_.figures().first_bad; bad >= 0) throw_bad_score(bad);
    return view_.orders();
  }
  std::span<const DeviceScores> score_queries(std::span<const DeviceQuery> queries) override {
    use_device(spec_.device);
    const Stream stream = stream_.get();
    std::int64_t most_docs = 0;
    std::int64_t docs = 0;
    for (const DeviceQuery& query : queries) {
      most_docs = std::max(most_docs, query.docs);
      docs += query.docs;
    }
    check_docs(most_docs);
    // Before there are answers, which it would drop.
    view_.make_room(stream, most_docs, std::max(most_docs, std::min(docs, kScoredAtOnce)));
    do {
      for (std::size_t slot = 0; slot < queries.size();) {
        const auto batch = queries.subspan(slot, together(queries.subspan(slot)));
        view_.use_slot(slot);
        score(batch);
        for (std::size_t number = 0; number < batch.size(); ++number) {
          view_.use_slot(slot++);
          view_.take(number);
          decide();
          view_.fetch(stream);
        }
        view_.fetch_scores(stream, docs);
      }
      stream_.wait();
      timeline_.collect(waited_);
      // The state follows from what was learned: widths of lists neither repair a covariance nor count.
      scored_queries_.clear();
      for (std::size_t slot = 0; slot < queries.size(); ++slot) {
        scored_queries_.push_back(view_.scores_of(slot));
        const std::uint64_t lost = view_.figures_of(slot).health.lost;
        scored_queries_.back().lost = static_cast<std::int64_t>(lost - std::exchange(lost_widths_, lost));
      }
      discard_negative_widths();
    } while (validate_or_retry());
    return scored_queries_;
  }
  void describe(std::span<float> scores, std::span<double> width_sq) override {
    use_device(spec_.device);
    view_.write_scores(stream_.get(), scores);
    if (!width_sq.empty()) view_.write_width_sq(stream_.get(), rule_.data(), width_sq);
  }
  DeviceComparison compare(ExecutionContext& context, std::span<const std::int32_t> shown) override {
    use_device(spec_.device);
    const Stream stream = stream_.get();
    timeline_.mark(stream, "shadow");
    const auto exact_sq = shadow_->width_sq(context, stream, view_.rows(), shown);  // waits
    timeline_.mark(stream, "");
    const QueryView::Decision decision = view_.decision(rule_.data());
    const std::size_t docs = decision.scores.size();
    shown_scores_.clear();
    own_sq_.clear();
    for (const std::int32_t i : shown) {
      shown_scores_.push_back(double{decision.scores[i]});
      for (const std::int32_t j : shown)
        own_sq_.push_back(decision.m[static_cast<std::size_t>(std::max(i, j)) * docs +
                                     static_cast<std::size_t>(std::min(i, j))]);
    }
    pair_width_sq(context, std::ssize(shown), own_sq_.data(), own_sq_.data());
    return {decision.rule, shown_scores_, own_sq_, exact_sq};
  }
  void settle() override { finish_training(); }
  void learn(const DeviceUpdate& update) override {
    finish_training();
    const Stream stream = stream_.get();
    // The documents handed over may have changed since, or another query has come. Votes leave no trace in
    // what follows.
    const bool handed = update.query.handed != nullptr;
    if (handed) {
      if (!scored_ || !view_.holds(update.query)) bring_for_learning(update.query);
    } else if (!by_vote() && (!scored_ || view_.query() != update.query)) {
      start_scoring(update.query);
    }
    timeline_.mark(stream, "observe");
    history_.add(stream, update, handed ? view_.documents() : train_.data());
    const auto count = std::ssize(update.pairs);
    const PreferencePair* pairs = history_.latest().pairs;
    if (!by_vote()) posterior_.observe(stream, view_.rows(), view_.m(), pairs, count);
    if (shadow_) {
      timeline_.mark(stream, "shadow");
      shadow_->observe(stream, view_.rows(), pairs, count);
    }
    if (update.extent != TrainingExtent::kNothing) {
      timeline_.mark(stream, "train");
      restarted_ = !update.start.empty();
      if (restarted_) restart(update.start);
      trainer_->train(history_);
      training_unchecked_ = true;
      repeats_ = 0;
    }
    const bool checks = posterior_.check_is_due() || (shadow_ && shadow_->posterior().check_is_due());
    timeline_.mark(stream, checks ? "check" : "");
    round_ = update.round;
    scored_ = false;
    update_unchecked_ = true;
    posterior_.check_drift(stream);
    if (shadow_) shadow_->posterior().check_drift(stream);
    if (checks) timeline_.mark(stream, "");
  }
  std::vector<double> steps() override {
    finish_training();
    if (!trainer_->has_steps()) return {};
    const auto steps = view_.outcome().first(static_cast<std::size_t>(spec_.members));
    return {steps.begin(), steps.end()};
  }
  bool has_dual_form() const override {
    return (shadow_ ? shadow_->posterior() : posterior_).spec().is_dual();
  }
  bool grows_in_place() const override {
    use_device(spec_.device);
    return AddressRange::supported();
  }
  void switch_to_primal() override {
    finish_training();
    const ProfiledRange range("rebuild");
    (shadow_ ? shadow_->posterior() : posterior_).switch_to_primal();
    scored_ = false;
  }
  DeviceHealth health() override {
    finish_training();
    DeviceHealth health;
    health.drift = by_vote() ? 0.0 : posterior_.drift(stream_.get());
    health.negative_widths = negative_before_ + static_cast<std::int64_t>(view_.figures().health.negative);
    health.bytes = posterior_.bytes();
    health.device_bytes =
        (shadow_ ? shadow_->bytes() : 0) + bytes_of(posterior_, history_, *trainer_, view_, train_,
                                                    eval_docs_, theta_, theta_, products_, eval_products_,
                                                    eval_rows_, eval_scores_, eval_means_, uploaded_);
    return health;
  }
  void begin_scores(FeatureMatrix docs) override {
    finish_training();
    const ProfiledRange range("eval");
    eval_stream_.wait();  // an earlier evaluation that was not finished
    copy_numbers(stream_.get(), theta_copy_.data(), theta_.data(), theta_.size());
    eval_theta_.record(stream_.get());
    const Stream stream = eval_stream_.get();
    eval_theta_.hold(stream);
    const float* from = eval_docs_.data();
    if (docs.on_device != nullptr) {
      from = docs.on_device->values();
    } else if (docs.values != spec_.data.eval_docs.values || docs.docs != spec_.data.eval_docs.docs) {
      uploaded_.reserve(stream, docs.docs * docs.features);
      eval_stream_.wait();
      copy_to_device(values_of(docs), uploaded_.data());
      from = uploaded_.data();
    }
    const std::int64_t at_once = std::min(kScoredAtOnce, docs.docs);
    const std::size_t bytes = static_cast<std::size_t>(docs.docs) * sizeof(float);
    eval_rows_.reserve(stream, spec_.members * at_once * spec_.shape.factors());
    eval_scores_.reserve(stream, spec_.members * at_once);
    eval_means_.reserve(stream, docs.docs);
    if (eval_answer_.size() < bytes) eval_answer_ = PinnedBytes(bytes);
    const NetworkStack copies{
        .shape = spec_.shape, .theta = theta_copy_.data(), .members = spec_.members, .many_docs = true};
    for (std::int64_t first = 0; first < docs.docs; first += at_once) {
      const std::int64_t count = std::min(at_once, docs.docs - first);
      forward(eval_products_, copies, from + first * docs.features,
              {eval_rows_.data(), count, spec_.shape.factors()}, {eval_scores_.data(), nullptr});
      mean_scores(stream, spec_.members, count, eval_scores_.data(), eval_means_.data() + first);
    }
    copy_bytes(stream, eval_answer_.data(), eval_means_.data(), bytes);
    eval_answered_.record(stream);
  }
  bool scores_ready() override { return eval_answered_.passed(); }
  void finish_scores(std::span<float> scores) override {
    use_device(spec_.device);
    const ProfiledRange range("eval");
    eval_stream_.wait();
    std::memcpy(scores.data(), eval_answer_.data(), scores.size_bytes());
  }
  std::vector<float> theta() override {
    finish_training();
    stream_.wait();
    return theta_.to_host();
  }
  void add_seconds(StageClock& clock) override {
    for (const StageClock::Stage& stage : waited_.stages()) clock.add(stage.name, stage.seconds);
    waited_ = StageClock();
  }
  void save(StateWriter& state) override {
    finish_training();
    stream_.wait();
    state.put("device.theta", theta_.to_host());
    trainer_->save(state);
    posterior_.save(state);
    if (shadow_) shadow_->posterior().save(state);
    state.put("device.negative_widths",
              negative_before_ + static_cast<std::int64_t>(view_.figures().health.negative));
  }
  void load(StateReader& state, const DeviceHistory& history) override {
    finish_training();
    stream_.wait();
    load_array(state, "device.theta", theta_);
    history_.restore(stream_.get(), history);
    trainer_->load(state);
    posterior_.load(stream_.get(), state);
    if (shadow_) shadow_->posterior().load(stream_.get(), state);
    negative_before_ = state.get_one<std::int64_t>("device.negative_widths") -
                       static_cast<std::int64_t>(view_.figures().health.negative);
    scored_ = false;
  }

 private:
  NetworkStack networks() const { return {spec_.shape, theta_.data(), spec_.members}; }
  bool by_vote() const { return spec_.certainty.by_vote; }
  void start_scoring(DeviceQuery query) {
    check_docs(query.docs);
    view_.make_room(stream_.get(), query.docs, query.docs);
    score(std::span(&query, 1));
    decide();
  }
  void score(std::span<const DeviceQuery> queries) {
    const Stream stream = stream_.get();
    scored_ = false;  // until all of it has been started
    timeline_.mark(stream, "score");
    view_.bring(stream, queries);
    view_.score(products_, networks());
  }
  /// The orders of the query that the view is about.
  void decide() {
    const Stream stream = stream_.get();
    view_.order_by_score(stream);
    timeline_.mark(stream, "width");
    if (!by_vote()) {
      posterior_.gram(stream, view_.rows(), view_.m());
      if (const auto& theory = spec_.certainty.policy.theory)
        set_theory_alpha(stream, *theory, &posterior_.status()->log_det, rule_.data());
    }
    view_.find_certain(stream, rule_.data(), posterior_.status(), trainer_->outcome());
    timeline_.mark(stream, "");
    scored_ = true;
  }
  /// How many of these queries are scored side by side. Products of a library have other bits among others.
  std::size_t together(std::span<const DeviceQuery> queries) const {
    if (spec_.shape.depth > 2 || networks().by_library()) return 1;
    std::int64_t docs = 0;
    const auto over = std::find_if(queries.begin(), queries.end(), [&](const DeviceQuery& query) {
      return (docs += query.docs) > kScoredAtOnce;
    });
    return std::max<std::size_t>(1, static_cast<std::size_t>(over - queries.begin()));
  }
  /// Documents with their factors and M, without orders.
  void bring_for_learning(DeviceQuery query) {
    const Stream stream = stream_.get();
    check_docs(query.docs);
    view_.make_room(stream, query.docs, query.docs);
    timeline_.mark(stream, "score");
    view_.bring(stream, std::span(&query, 1));
    if (!by_vote()) {
      view_.score(products_, networks());
      timeline_.mark(stream, "width");
      posterior_.gram(stream, view_.rows(), view_.m());
    }
    timeline_.mark(stream, "");
  }
  /// Waits until what the latest update started is validated.
  void finish_training() {
    use_device(spec_.device);
    if (!update_unchecked_) return;
    do {
      view_.fetch_figures(stream_.get(), posterior_.status(), trainer_->outcome());
      stream_.wait();
      timeline_.collect(waited_);
    } while (validate_or_retry());
  }
  /// Validates what the latest fetch brought to the host. Returns whether something was repeated, so that
  /// the fetch has to be repeated too.
  bool validate_or_retry() {
    // Widths at parameters that were undone are no evidence about the covariance.
    const bool again = validate_training();
    if (again) lost_widths_ = view_.figures().health.lost;
    if (again || validate_posterior()) {
      discard_negative_widths();
      return true;
    }
    negative_seen_ = view_.figures().health.negative;
    update_unchecked_ = false;
    return false;
  }
  bool validate_training() {
    if (!training_unchecked_) return false;
    const std::int64_t members = spec_.members;
    const auto outcome_of = [&](std::int64_t member) -> ResidentTrainer::Outcome {
      const auto all = view_.outcome();
      return {all[member], all[members + member], all[2 * members + member]};
    };
    const auto pairs = static_cast<double>(history_.observed());
    std::vector<std::int64_t> failed;
    for (std::int64_t member = 0; member < members; ++member) {
      if (!trainer_->has_failed(outcome_of(member), pairs, repeats_)) continue;
      if (!trainer_->can_repeat(outcome_of(member), repeats_)) report_divergence();
      failed.push_back(member);
    }
    if (failed.empty()) {
      training_unchecked_ = false;
      return false;
    }
    ++repeats_;
    for (const std::int64_t member : failed) trainer_->repeat(history_, member, repeats_);
    scored_ = false;
    return true;
  }
  bool validate_posterior() {
    const QueryView::Figures& figures = view_.figures();
    const bool lost = figures.health.lost > lost_widths_;
    lost_widths_ = figures.health.lost;
    if (figures.status.failed == 0 && !lost) {
      posterior_.trust();
      return false;
    }
    const ProfiledRange range("rebuild");
    posterior_.repair(stream_.get());
    scored_ = false;
    return true;
  }
  /// Negative widths of an answer that is discarded do not count.
  void discard_negative_widths() {
    const std::uint64_t negative = view_.figures().health.negative;
    negative_before_ -= static_cast<std::int64_t>(negative - negative_seen_);
    negative_seen_ = negative;
  }
  [[noreturn]] void report_divergence() {
    const ResidentTrainer::Divergence found = trainer_->find_divergence(history_);
    if (restarted_) {
      copy_numbers(stream_.get(), theta_.data(), theta_before_restart_.data(), theta_.size());
      stream_.wait();
    }
    training_unchecked_ = update_unchecked_ = false;
    scored_ = false;
    std::optional<double> lambda;
    if (!spec_.training.mini_batches) lambda = spec_.posterior.lambda;
    throw_diverged({round_, found.step, found.loss, spec_.training.learning_rate, lambda});
  }
  /// Moves the parameters to where a training starts.
  void restart(std::span<const float> start) {
    if (theta_before_restart_.size() == 0) theta_before_restart_ = DeviceArray<float>(theta_.size());
    copy_numbers(stream_.get(), theta_before_restart_.data(), theta_.data(), theta_.size());
    stream_.wait();
    copy_to_device(start, theta_.data());
  }

  DeviceNetworkSpec spec_;
  OwnedStream stream_;
  ProductPlans plans_;
  Products products_;  // in stream_
  SharedDocuments train_;
  SharedDocuments eval_docs_;
  DeviceArray<float> theta_;  // [members × p]
  DeviceArray<CertaintyRule> rule_;
  QueryView view_;
  ResidentHistory history_;
  WatchedPosterior posterior_;
  std::optional<ShadowPosterior> shadow_;
  std::unique_ptr<ResidentTrainer> trainer_;
  DeviceArray<float> theta_before_restart_;  // of the latest training that started elsewhere

  // Evaluation, in its own stream and with a copy of the parameters.
  OwnedStream eval_stream_;
  Products eval_products_;
  Event eval_answered_;
  Event eval_theta_;  // has been copied
  DeviceArray<float> theta_copy_;
  GrowingArray<float> uploaded_;  // documents other than eval_docs_
  GrowingArray<float> eval_rows_;
  GrowingArray<float> eval_scores_;  // of members
  GrowingArray<float> eval_means_;
  PinnedBytes eval_answer_;

  Timeline timeline_;
  StageClock waited_;  // seconds of what has been waited for

  std::vector<DeviceScores> scored_queries_;

  // The latest comparison: scores and own widths of the shown documents.
  std::vector<double> shown_scores_;
  std::vector<double> own_sq_;

  bool scored_ = false;               // view_ holds a query scored at the current parameters
  bool update_unchecked_ = false;     // what the latest update started has not been validated
  bool training_unchecked_ = false;   // that includes a training
  bool restarted_ = false;            // which did not start at the parameters before it
  int repeats_ = 0;                   // how often it was repeated
  std::uint32_t round_ = 0;           // of the latest update
  std::uint64_t lost_widths_ = 0;     // at the latest answer
  std::int64_t negative_before_ = 0;  // in earlier runs
  std::uint64_t negative_seen_ = 0;   // at the latest answer that was returned
};

}  // namespace

std::unique_ptr<DeviceNetwork> make_network(const DeviceNetworkSpec& spec) {
  return std::make_unique<ResidentNetwork>(spec);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
