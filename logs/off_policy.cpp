#include "logs/off_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "core/io/fingerprint.h"
#include "core/random/rng_stream.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/saved_trial.h"
#include "logs/log_reader.h"
#include "models/files/model_scorer.h"

namespace olrank {
namespace {

constexpr std::string_view kIncumbentArm = "incumbent";

/// A list of the log, by the numbers of its candidates.
struct LoggedList {
  std::uint64_t cluster = 0;
  std::int64_t query = -1;  // of the data
  std::vector<std::int32_t> shown;
  std::vector<std::int32_t> order;   // that the log has of the policy
  std::vector<const DocId*> others;  // in that order, numbered after those of the record
  std::vector<double> expected;      // reward of each rank by the click model
};

/// One policy's scores, and what it would have done.
class ComparedPolicy {
 public:
  ComparedPolicy(const std::string& named, const OffPolicyRequest& request, const Dataset* data,
                 ExecutionContext& context)
      : name_(named), estimates_(request.estimates) {
    if (named.empty()) return;  // the incumbent has no model
    ModelScorer scorer(load_model(model_file_of(named), code_if(request.trust_code)));
    if (data != nullptr) {
      of_data_ = scores_of_all(scorer, fitted_to_model(*data, scorer.model(), "--data", context), context);
      return;
    }
    // The log has inputs, not raw features.
    scorer_ = std::make_unique<ModelScorer>(on_inputs(scorer.model()));
    NamedInputs inputs = request.of_log;
    inputs.names = names_of_inputs(telling_names(scorer.model().feature_names), scorer.model().normaliser);
    names_.emplace(std::move(inputs));
  }

  const std::string& name() const { return name_; }
  double unseen() const { return unseen_; }  // sum over lists
  void add_unseen(double share) { unseen_ += share; }
  SlateEstimates& estimates() { return estimates_; }

  std::span<const double> scores(const FeedbackRecord& record, const LoggedList& list, const Dataset* data,
                                 Scratch& scratch) {
    if (data != nullptr) {
      const std::int64_t begin = data->offset(list.query);
      return std::span(of_data_).subspan(begin, data->docs_of(list.query));
    }
    const bool has_names = names_->has_names() && !record.feature_names.empty();
    if (has_names) {
      named_ = record;
      if (const std::string wrong = names_->apply(named_); !wrong.empty())
        throw_error<InvalidArgument>("{}: {}", name_, wrong);
    }
    const FeatureMatrix docs = has_names ? named_.features() : record.features();
    if (docs.features != scorer_->features()) {
      throw_error<InvalidArgument>(
          "The log has documents of {} inputs, and {} takes {}: choose a model of the same service.",
          docs.features, name_, scorer_->features());
    }
    scores_.resize(record.docs.size());
    const std::int64_t offsets[] = {0, std::ssize(record.docs)};
    scorer_->score(scratch, docs, offsets, scores_,
                   {[&](std::int64_t) -> std::string_view { return record.query; },
                    [&](std::int64_t doc) -> std::string_view { return record.docs[doc].text; }});
    return scores_;
  }

 private:
  std::string name_;
  SlateEstimates estimates_;
  std::vector<double> of_data_;
  std::unique_ptr<ModelScorer> scorer_;
  std::optional<FeatureMap> names_;
  FeedbackRecord named_;  // the latest record with names, with the inputs of the model
  std::vector<double> scores_;
  double unseen_ = 0.0;
};

class Documents {
 public:
  Documents(const Dataset* data, ListPolicy policy) : data_(data), policy_(policy) {
    if (data != nullptr) docs_.emplace(*data);
  }

  /// Says what is wrong with the record; empty if nothing is.
  std::string resolve(const FeedbackRecord& record, LoggedList& list) {
    list.cluster = fingerprint_of(record.query).low;
    list.shown.clear();
    list.order.clear();
    list.others.clear();
    if (const DocId* twice = shown_twice(record))
      return fmt::format("Document '{}' is shown twice.", excerpt(twice->text));
    if (data_ == nullptr) {
      if (record.inputs.empty() && !policy_.is_logged())
        return "The log has no inputs of documents: give the data that it refers to by --data.";
      for (std::int32_t doc = 0; doc < record.shown(); ++doc) list.shown.push_back(doc);
      for (const DocId& id : order_of(record)) {
        const auto found = std::find(record.docs.begin(), record.docs.end(), id);
        list.order.push_back(static_cast<std::int32_t>(found - record.docs.begin()));
        if (found != record.docs.end()) continue;
        list.order.back() += static_cast<std::int32_t>(list.others.size());
        list.others.push_back(&id);
      }
      return "";
    }
    std::string wrong = docs_->find_query(record.query, list.query);
    if (wrong.empty())
      wrong = docs_->find(list.query, std::span(record.docs).first(record.shown()), list.shown);
    return wrong.empty() ? docs_->find(list.query, order_of(record), list.order) : wrong;
  }

  std::int64_t candidates(const FeedbackRecord& record, const LoggedList& list) const {
    return data_ == nullptr ? std::ssize(record.docs) + std::ssize(list.others)
                            : data_->docs_of(list.query);
  }

 private:
  /// Returns what the log has of the policy's order.
  std::span<const DocId> order_of(const FeedbackRecord& record) const {
    if (!policy_.is_logged()) return {};
    return policy_.kind == ListPolicy::Kind::kIncumbent ? record.incumbent : record.candidate;
  }

  static const DocId* shown_twice(const FeedbackRecord& record) {
    const auto end = record.docs.begin() + record.shown();
    for (auto doc = record.docs.begin(); doc != end; ++doc) {
      if (std::find(record.docs.begin(), doc, *doc) != doc) return &*doc;
    }
    return nullptr;
  }

  const Dataset* data_;
  ListPolicy policy_;
  std::optional<LogDocs> docs_;
};

class OffPolicy {
 public:
  OffPolicy(const OffPolicyRequest& request, const Dataset* data, ExecutionContext& context)
      : request_(request), data_(data), context_(context), documents_(data, request.policy) {
    const bool is_logged = request.policy.is_logged();
    for (const std::string& model : is_logged ? std::vector<std::string>{""} : request.models)
      policies_.emplace_back(model, request, data, context);
    scored_.resize(policies_.size());
    targets_.resize(policies_.size());
  }

  OffPolicyResult run() {
    goes_by_own_lists_ = has_own_lists();
    if (request_.wants_model()) fit_clicks();
    LogReader log(request_.log);
    while (log.next(record_)) take(log.file(), log.number());
    return finish();
  }

 private:
  /// Lists that the incumbent's arm has shown tell its reward without any weight, if there are enough.
  bool has_own_lists() {
    if (request_.policy.kind != ListPolicy::Kind::kIncumbent) return false;
    std::int64_t own = 0;
    LogReader log(request_.log);
    while (own < OffPolicyResult::kFewestEffectiveLists && log.next(record_))
      own += record_.arm == kIncumbentArm && !record_.propensity.empty() ? 1 : 0;
    return own == OffPolicyResult::kFewestEffectiveLists;
  }

  /// Fits to the lists of all arms, with probabilities or without: users read them alike.
  void fit_clicks() {
    const bool by_inputs = goes_by_inputs(request_.click_model);
    if (by_inputs && data_ != nullptr) {
      throw_error<InvalidArgument>(
          "--click-model {} needs the inputs that the log of a service has, and takes none from --data: "
          "choose another click model.",
          name_of(request_.click_model));
    }
    clicks_ =
        std::make_unique<DirectMethod>(request_.click_model, request_.reward, request_.estimates.ranks);
    ClickDocs docs;
    std::string names;  // of the features
    std::int64_t lists = 0;
    std::int64_t weighed = 0;
    LogReader log(request_.log);
    while (log.next(record_)) {
      resolve(log.file(), log.number());
      if (by_inputs && record_.columns == 0) {
        throw_data_error(log.file(), log.number(), 1,
                         "The list has no inputs of documents, which --click-model {} needs.",
                         name_of(request_.click_model));
      }
      if (by_inputs && docs.columns != 0 && docs.columns != record_.columns) {
        throw_data_error(log.file(), log.number(), 1,
                         "The documents have {} inputs, and those of earlier lists {}.", record_.columns,
                         docs.columns);
      }
      if (lists == 0) names = record_.feature_names;
      if (by_inputs && record_.feature_names != names)
        throw DataError(log.file(), log.number(), 1,
                        "The documents have other features than those of earlier lists: give the lists of "
                        "one schema, or another --click-model.");
      ++lists;
      weighed += record_.propensity.empty() || is_of_another_arm() ? 0 : 1;
      // A model that goes by inputs knows the attraction of documents that were not shown, too.
      number_candidates(by_inputs ? std::ssize(record_.docs) : record_.shown(), docs);
      number(list_.shown);
      clicks_->add(numbered_, record_.clicks, record_.reward());
    }
    docs.count = data_ != nullptr ? data_->docs() : numbers_.size();
    if (lists == 0) return clicks_.reset();
    result_.by_model_alone = weighed == 0 || request_.policy.kind == ListPolicy::Kind::kCandidate;
    clicks_->fit(std::move(docs));
  }

  /// Whether the list is of another arm than the one whose lists have weights.
  bool is_of_another_arm() const {
    if (goes_by_own_lists_) return record_.arm != kIncumbentArm;
    return !record_.arm.empty() && record_.arm != FeedbackRecord::kLearnerArm;
  }

  void resolve(const std::string& file, std::int64_t number) {
    if (const std::string wrong = documents_.resolve(record_, list_); !wrong.empty())
      throw DataError(file, number, 1, wrong);
  }

  void find_rewards() {
    rewards_.clear();
    bool first = true;
    for (std::size_t rank = 0; rank < record_.clicks.size(); ++rank) {
      const bool is_weighed = request_.reward == ClickReward::kWeight && !record_.rewards.empty();
      rewards_.push_back(is_weighed                  ? record_.rewards[rank]
                         : record_.clicks[rank] != 0 ? reward_at(request_.reward, rank, first)
                                                     : 0.0);
      first = first && record_.clicks[rank] == 0;
    }
  }

  void take(const std::string& file, std::int64_t number) {
    find_rewards();
    if (result_.by_model_alone) {
      result_.of_other_arms += is_of_another_arm() ? 1 : 0;
      result_.without_propensity += !is_of_another_arm() && record_.propensity.empty() ? 1 : 0;
    } else {
      if (is_of_another_arm()) {
        ++result_.of_other_arms;
        if (goes_by_own_lists_ && record_.arm == FeedbackRecord::kLearnerArm)
          learners_.add({fingerprint_of(record_.query).low, rewards_, {}, {}});
        return;
      }
      if (record_.propensity.empty()) {
        ++result_.without_propensity;
        return;
      }
    }
    resolve(file, number);
    const bool is_logged = request_.policy.is_logged();
    if (is_logged && list_.order.empty()) {
      ++result_.without_order;
      return;
    }
    if (is_logged) score_logged_order();
    const std::span<const double> logged =
        result_.by_model_alone ? std::span<const double>() : record_.propensity;
    bool is_weighable = true;  // by all policies, as they are compared on the same lists
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      scored_[i] = is_logged ? scores_ : policies_[i].scores(record_, list_, data_, context_.scratch());
      targets_[i].resize(list_.shown.size());
      request_.policy.probabilities(scored_[i], list_.shown, targets_[i]);
      is_weighable = is_weighable && policies_[i].estimates().can_weigh({0, rewards_, logged, targets_[i]});
    }
    if (!is_weighable) {
      if (result_.beyond_weight++ == 0)
        log_warning("{}:{}: The probabilities of this list are too small for a weight: left out.", file,
                    number);
      return;
    }
    expect_shown();
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      ComparedList compared{list_.cluster, rewards_, logged, targets_[i]};
      forecast(scored_[i], policies_[i], compared);
      policies_[i].estimates().add(compared);
    }
    if (documents_.candidates(record_, list_) == record_.shown() && data_ == nullptr &&
        !record_.has_unshown && !is_logged)
      ++result_.without_candidates;
    ++result_.lists;
    result_.longest = std::max(result_.longest, record_.shown());
  }

  /// Sets what the click model expects of the list as it was shown.
  void expect_shown() {
    list_.expected.clear();
    if (!clicks_) return;
    find_candidates();
    const auto ranks = std::min(std::ssize(list_.shown), request_.estimates.ranks);
    number(std::span(list_.shown).first(static_cast<std::size_t>(ranks)));
    list_.expected.resize(numbered_.size());
    clicks_->expect(numbered_, list_.expected);
  }

  /// Sets what a click model says of lists that a policy would have shown, as many as make chance small.
  void forecast(std::span<const double> scores, ComparedPolicy& policy, ComparedList& compared) {
    if (!clicks_) return;
    compared.expected = list_.expected;
    constexpr int kDraws = 8;
    const int draws = request_.policy.is_certain() ? 1 : kDraws;
    const auto ranks = std::min(std::ssize(list_.shown), request_.estimates.ranks);
    drawn_.resize(std::min<std::int64_t>(ranks, std::ssize(scores)));
    const PhiloxKey key = make_key({.seed = request_.estimates.seed, .purpose = Purpose::kList});
    for (int draw = 0; draw < draws; ++draw) {
      RngStream coins(key, static_cast<std::uint32_t>(result_.lists), static_cast<std::uint32_t>(draw));
      request_.policy.draw(scores, coins, drawn_);
      number(drawn_);
      const DirectMethod::Forecast told = clicks_->forecast(numbered_);
      compared.direct += told.reward / draws;
      compared.by_exposure += told.by_exposure / draws;
      policy.add_unseen(told.unseen / draws);
    }
  }

  /// Numbers the first documents of the record for the click model, with the inputs of new ones where it
  /// goes by them. The documents of data have their places in it as numbers.
  void number_candidates(std::int64_t count, ClickDocs& docs) {
    if (data_ != nullptr) return;
    candidate_numbers_.clear();
    for (std::int64_t doc = 0; doc < count; ++doc) {
      const auto [number, is_new] = numbers_.add(record_.query, record_.docs[doc].text);
      candidate_numbers_.push_back(number);
      if (!is_new || !goes_by_inputs(request_.click_model)) continue;
      docs.columns = record_.columns;
      const auto row = record_.inputs.begin() + doc * record_.columns;
      docs.inputs.insert(docs.inputs.end(), row, row + record_.columns);
    }
  }
  void find_candidates() {
    if (data_ != nullptr) return;
    candidate_numbers_.clear();
    for (const DocId& doc : record_.docs)
      candidate_numbers_.push_back(numbers_.find(record_.query, doc.text));
    for (const DocId* doc : list_.others)
      candidate_numbers_.push_back(numbers_.find(record_.query, doc->text));
  }
  std::int32_t number_of(std::int32_t candidate) const {
    return data_ != nullptr ? static_cast<std::int32_t>(data_->offset(list_.query)) + candidate
                            : candidate_numbers_[candidate];
  }
  void number(std::span<const std::int32_t> candidates) {
    numbered_.clear();
    for (const std::int32_t candidate : candidates) numbered_.push_back(number_of(candidate));
  }

  /// Scores whose order is the one that the log has of the policy.
  void score_logged_order() {
    scores_.assign(static_cast<std::size_t>(documents_.candidates(record_, list_)), -1e9);
    for (std::size_t rank = 0; rank < list_.order.size(); ++rank)
      scores_[list_.order[rank]] = -static_cast<double>(rank);
  }

  OffPolicyResult finish() {
    if (result_.lists == 0) {
      throw InvalidArgument(
          result_.without_order > 0 && request_.policy.kind == ListPolicy::Kind::kCandidate
              ? fmt::format("None of the lists in {} has the list that the learner would have shown in "
                            "place of another arm: a service with --arms logs it.",
                            request_.log)
          : result_.without_order > 0
              ? fmt::format("None of the lists in {} has the order of an incumbent: send 'incumbent' with "
                            "requests.",
                            request_.log)
          : result_.beyond_weight > 0
              ? fmt::format("No list in {} has a weight: the probabilities of {} are too small for one.",
                            request_.log, result_.beyond_weight)
          : result_.without_propensity + result_.of_other_arms > 0
              ? fmt::format("Estimates by weights need lists of the learner with probabilities "
                            "('propensity'), and {} has none. {}",
                            request_.log, unweighed_sentences(result_))
              : fmt::format("{} has no lists.", request_.log));
    }
    result_.shown = policies_.front().estimates().shown();
    result_.own_lists = goes_by_own_lists_;
    result_.of_learner = learners_.lists();
    if (result_.of_learner > 0) result_.learner = learners_.shown();
    for (ComparedPolicy& policy : policies_) {
      std::vector<SlateEstimate> estimates = policy.estimates().estimates();
      std::erase_if(estimates, [&](const SlateEstimate& one) { return !request_.wants(one.estimator); });
      result_.policies.push_back(
          {policy.name().empty() ? request_.policy.name() : policy.name(), std::move(estimates),
           policy.estimates().support(), policy.estimates().whole_support(),
           request_.estimates.clip > 0.0 && !result_.by_model_alone ? policy.estimates().lower_bound()
                                                                    : 0.0,
           policy.unseen() / static_cast<double>(result_.lists)});
    }
    return result_;
  }

  const OffPolicyRequest& request_;
  const Dataset* data_;
  ExecutionContext& context_;
  Documents documents_;
  ClickDocNumbers numbers_;
  std::unique_ptr<DirectMethod> clicks_;  // none without an estimator that goes by it
  std::vector<ComparedPolicy> policies_;
  OffPolicyResult result_;
  bool goes_by_own_lists_ = false;               // those of the incumbent's arm
  SlateEstimates learners_{request_.estimates};  // the learner's lists, where it goes by those
  FeedbackRecord record_;
  LoggedList list_;
  std::vector<double> rewards_;
  std::vector<double> scores_;
  std::vector<std::span<const double>> scored_;  // by policy: the scores of the candidates
  std::vector<std::vector<double>> targets_;     // by policy
  std::vector<std::int32_t> candidate_numbers_;  // of the record, without data
  std::vector<std::int32_t> drawn_;
  std::vector<std::int32_t> numbered_;
};

}  // namespace

void OffPolicyRequest::choose(const OffPolicyNames& names) {
  policy = ListPolicy::parse(names.policy);
  reward = parse_choice<ClickReward>("--reward", names.reward);
  for (const std::string& name : names.estimators)
    estimators.push_back(parse_choice<SlateEstimator>("--estimators", name));
  click_model = parse_choice<FittedModel>("--click-model", names.click_model);
}

void OffPolicyRequest::check() const {
  if (log.empty()) throw InvalidArgument("--log is required: name a log of shown lists.");
  if (models.empty() && !policy.is_logged())
    throw InvalidArgument(
        "--model is required: name the model whose lists are estimated, or choose --policy incumbent or "
        "candidate.");
  if (policy.kind == ListPolicy::Kind::kCandidate && !wants_model()) {
    throw InvalidArgument(
        "--policy candidate has no weights, as its lists were not shown: choose --estimators such as "
        "direct,intervention-aware.");
  }
  if (click_model == FittedModel::kRankOnly) {
    throw InvalidArgument(
        "--click-model must tell documents apart, and rank-only does not: choose pbm, cascade, dcm, dbn, "
        "ubm, two-tower or trust.");
  }
  if (estimates.ranks < 1 || estimates.ranks > 1000)
    throw_error<InvalidArgument>("--at must be from 1 to 1000, not {}.", estimates.ranks);
  if (estimates.replicates < 2 || estimates.replicates > 100'000)
    throw_error<InvalidArgument>("--replicates must be from 2 to 100000, not {}.", estimates.replicates);
  if (!(estimates.confidence > 0.0 && estimates.confidence < 1.0))
    throw_error<InvalidArgument>("--confidence must be between 0 and 1, not {}.", estimates.confidence);
  if (!(estimates.clip >= 0.0))
    throw_error<InvalidArgument>("--clip must be above 0, not {}.", estimates.clip);
}

bool OffPolicyRequest::wants(SlateEstimator estimator) const {
  return estimators.empty() ||
         std::find(estimators.begin(), estimators.end(), estimator) != estimators.end();
}

bool OffPolicyRequest::wants_model() const {
  return estimators.empty() || std::any_of(estimators.begin(), estimators.end(), goes_by_model);
}

OffPolicyResult evaluate_off_policy(const OffPolicyRequest& request, const Dataset* data,
                                    ExecutionContext& context) {
  return OffPolicy(request, data, context).run();
}

}  // namespace olrank
