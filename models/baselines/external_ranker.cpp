#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "core/explore/exploring_list.h"
#include "core/online/online_ranker.h"
#include "core/throw_error.h"
#include "models/baselines/baselines.h"
#include "models/baselines/external_ranker.h"

namespace olrank {
namespace {

struct RankerRegistry {
  std::mutex mutex;
  std::map<std::string, RegisteredRanker> rankers;
};

RankerRegistry& ranker_registry() {
  static RankerRegistry registry;
  return registry;
}

std::span<const float> values_of(FeatureMatrix docs) {
  return {docs.values, static_cast<std::size_t>(docs.docs * docs.features)};
}

ExternalQuery external_query(const QueryDocs& query, std::uint32_t round) {
  return {round,       query.query, query.docs(), query.features.features, values_of(query.features),
          query.qid(), query.ids(), query.person};
}

/// A registered ranker as trials see it. Checks what comes back: throws InvalidArgument for a list that is
/// none, and for scores that are not finite.
class ExternalAdapter : public OnlineRanker {
 public:
  ExternalAdapter(std::string name, std::int64_t cutoff, std::unique_ptr<ExternalRanker> ranker)
      : name_(std::move(name)), cutoff_(cutoff), ranker_(std::move(ranker)) {}

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    const auto measured = context.clock.measure("rank");
    round_ = round;
    const ExternalQuery asked = external_query(query, round);
    complete(ranker_->rank(asked), query);
    if (const auto certain = ranker_->certain_orders(asked)) return with_certainty(*certain, query.docs());
    return {list_, std::nullopt};
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    const auto measured = context.clock.measure("train");
    round_ = feedback.round;
    ranker_->learn(external_query(feedback.query, feedback.round), feedback.shown, feedback.clicks);
    return {};
  }
  void describe(const QueryDocs& query, bool /*full*/, RoundDetail& detail) override {
    scores_.assign(query.docs(), 0.0F);
    if (!score_query(query, scores_)) checked_scores(query.features, scores_);
    detail = {};
    detail.scores.assign(scores_.begin(), scores_.end());
  }
  void score(ExecutionContext& /*context*/, FeatureMatrix docs, std::span<float> scores) const override {
    checked_scores(docs, scores);
  }
  void score_part(ExecutionContext& context, FeatureMatrix docs, const PartNames& names,
                  std::span<float> scores) const override {
    for (std::int64_t query = 0; query < docs.lists(); ++query) {
      const std::int64_t first = docs.list_begin(query);
      const FeatureMatrix rows = docs.part(first, docs.list_end(query));
      const QueryDocs of_query{.query = query, .first_doc = first, .features = rows, .names = &names};
      if (!score_query(of_query, scores.subspan(first, rows.docs))) return score(context, docs, scores);
    }
  }
  std::int64_t parameters() const override { return ranker_->parameters(); }
  ModelTensors model() const override {
    return {{}, {{"architecture", std::string(kExternalArchitecture)}}};
  }
  std::vector<RankerFigure> figures(ExecutionContext& /*context*/) const override { return {}; }
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override {
    state.numbers("external.round", round_);
    std::string own = state.reads() ? "" : ranker_->save();
    state.text("external.state", own);
    if (state.reads()) ranker_->load(own);
  }

 private:
  /// Makes list_ of the documents that came back.
  void complete(std::span<const std::int32_t> docs, const QueryDocs& query) {
    list_.clear();
    listed_.assign(query.docs(), 0);
    for (const std::int32_t doc : docs) {
      if (doc < 0 || doc >= query.docs()) {
        throw_error<InvalidArgument>(
            "Ranker '{}' returned document {} in round {}, but the query has {} documents.", name_, doc,
            round_, query.docs());
      }
      if (std::exchange(listed_[doc], 1) != 0)
        throw_error<InvalidArgument>("Ranker '{}' returned document {} twice in round {}.", name_, doc,
                                     round_);
      list_.push_back(doc);
    }
    if (const std::int64_t shown = std::min(cutoff_, query.docs()); std::ssize(docs) < shown) {
      throw_error<InvalidArgument>("Ranker '{}' returned {} documents in round {}, but {} are shown.",
                                   name_, docs.size(), round_, shown);
    }
    for (std::int32_t doc = 0; doc < query.docs(); ++doc) {
      if (listed_[doc] == 0) list_.push_back(doc);
    }
  }
  /// The list with its figures of certainty. Throws InvalidArgument for orders that are none.
  RankedList with_certainty(std::span<const ExternalOrder> certain, std::int64_t docs) {
    const auto refuse = [&](const ExternalOrder& order, std::string_view why) {
      throw_error<InvalidArgument>("Ranker '{}' is certain of ({}, {}) in round {}: {}.", name_,
                                   order.first, order.second, round_, why);
    };
    // Places in an order that all of them agree with: of the list, each document after those before it.
    std::vector<std::vector<std::int32_t>> after(docs);
    std::vector<std::int32_t> left(docs, 0);
    for (const ExternalOrder& order : certain) {
      if (std::min(order.first, order.second) < 0 || std::max(order.first, order.second) >= docs)
        refuse(order, fmt::format("the query has {} documents", docs));
      if (order.first == order.second) refuse(order, "an order has two documents");
      after[order.first].push_back(order.second);
      ++left[order.second];
    }
    std::vector<std::int32_t> place(docs, -1);
    by_score_.clear();
    while (std::ssize(by_score_) < docs) {
      const auto free = std::find_if(list_.begin(), list_.end(),
                                     [&](std::int32_t doc) { return place[doc] < 0 && left[doc] == 0; });
      if (free == list_.end()) {
        const auto circle = std::find_if(certain.begin(), certain.end(), [&](const ExternalOrder& order) {
          return place[order.first] < 0 && place[order.second] < 0;
        });
        refuse(*circle, "its orders go in a circle");
      }
      place[*free] = static_cast<std::int32_t>(by_score_.size());
      by_score_.push_back(*free);
      for (const std::int32_t next : after[*free]) --left[next];
    }
    orders_.reset(docs);
    for (const ExternalOrder& order : certain) orders_.set(place[order.first], place[order.second]);
    exploring_.arrange_as(by_score_, orders_, list_, {});
    return exploring_.finish(by_score_, orders_, cutoff_);
  }
  bool score_query(const QueryDocs& query, std::span<float> scores) const {
    std::fill(scores.begin(), scores.end(), std::numeric_limits<float>::quiet_NaN());
    if (!ranker_->score_query(external_query(query, round_), scores)) return false;
    check_finite(scores, query.names == nullptr ? "" : fmt::format(" of query '{}'", query.qid()));
    return true;
  }
  void checked_scores(FeatureMatrix docs, std::span<float> scores) const {
    // Scores that it leaves out show.
    std::fill(scores.begin(), scores.end(), std::numeric_limits<float>::quiet_NaN());
    ranker_->score(values_of(docs), docs.docs, docs.features, scores);
    check_finite(scores, "");
  }
  void check_finite(std::span<const float> scores, std::string_view where) const {
    const auto bad =
        std::find_if(scores.begin(), scores.end(), [](float score) { return !std::isfinite(score); });
    if (bad == scores.end()) return;
    throw_error<InvalidArgument>(
        "Ranker '{}' gave document {} of {}{} the score {} after round {}: scores must be finite.", name_,
        bad - scores.begin(), scores.size(), where, *bad, round_);
  }

  std::string name_;
  std::int64_t cutoff_;
  std::unique_ptr<ExternalRanker> ranker_;
  std::uint32_t round_ = 0;  // the latest
  std::vector<std::int32_t> list_;
  std::vector<std::uint8_t> listed_;
  std::vector<float> scores_;
  std::vector<std::int32_t> by_score_;
  OrderBits orders_;
  ExploringList exploring_{ListRule::kCertain, false, {}};
};

}  // namespace

void register_ranker(const std::string& name, const std::string& description,
                     ExternalRankerFactory factory) {
  if (name.empty()) throw InvalidArgument("A registered ranker needs a name that is not empty.");
  if (description.empty() || description.find('\n') != std::string::npos) {
    throw_error<InvalidArgument>(
        "The description of ranker '{}' must be one line: name the ranker, its version and its parameters.",
        name);
  }
  if (!factory)
    throw_error<InvalidArgument>("The factory of ranker '{}' is empty: register a function.", name);
  RankerRegistry& registry = ranker_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  if (!registry.rankers.emplace(name, RegisteredRanker{description, std::move(factory)}).second) {
    throw_error<InvalidArgument>(
        "There is a registered ranker '{}' already: choose another name, or unregister it.", name);
  }
}

void unregister_ranker(const std::string& name) {
  RegisteredRanker last;  // ends without the lock, in case its destructor registers or unregisters
  RankerRegistry& registry = ranker_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.rankers.find(name);
  if (found == registry.rankers.end()) return;
  last = std::move(found->second);
  registry.rankers.erase(found);
}

RegisteredRanker registered_ranker(const std::string& named, const std::string& own) {
  const std::size_t open = own.find('(');
  if (open != std::string::npos && own.back() != ')')
    throw_error<InvalidArgument>("Ranker '{}' has own = \"{}\": write NAME or NAME(PARAMETERS).", named,
                                 own);
  const std::string name = own.empty() ? named : own.substr(0, open);
  RankerRegistry& registry = ranker_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.rankers.find(name);
  if (found == registry.rankers.end()) {
    throw_error<InvalidArgument>(
        "No ranker named '{}' is registered: kind 'external' is for programs that bring rankers of their "
        "own.",
        name);
  }
  RegisteredRanker ranker = found->second;
  if (open != std::string::npos) ranker.parameters = own.substr(open + 1, own.size() - open - 2);
  return ranker;
}

std::unique_ptr<OnlineRanker> make_external(const RankerRequest& request) {
  const std::string& name = request.settings.name;
  RegisteredRanker registered = registered_ranker(name, request.settings.own);
  auto ranker =
      registered.factory({name, request.features, request.cutoff, request.keys.seed, request.keys.fold,
                          request.keys.click_model, std::move(registered.parameters)});
  if (ranker == nullptr)
    throw_error<InvalidArgument>("The factory of ranker '{}' made no ranker: return an object.", name);
  return std::make_unique<ExternalAdapter>(name, request.cutoff, std::move(ranker));
}

}  // namespace olrank
