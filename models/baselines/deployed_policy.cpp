#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/feedback/examination.h"
#include "core/metrics/list_metrics.h"
#include "models/baselines/baselines.h"
#include "models/baselines/pdgd.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {
namespace {

/// A ranker whose lists are Plackett-Luce draws over the scores of a deployed policy, which the policy that
/// is learned from them replaces every `refresh_rounds` rounds.
class DeployedPolicyRanker : public ScoreModelRanker {
 public:
  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    scores_of(context, query, round);  // for describe() and learn()
    const auto measured = context.clock.measure("rank");
    Scratch& scratch = context.execution.scratch();
    const Scratch::Frame frame(scratch);
    const auto scores = scratch.take<double>(query.docs());
    score_with(context.execution, deployed_, query, round, scores);
    draw_plackett_luce(scores, list_key_, round, scratch, list_, propensity_);
    return shown_list();
  }
  /// Probabilities of a rank sum over all documents of the query.
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override {
    ScoreModelRanker::fields(state);
    // Checkpoints have these names from a kind that is gone.
    state.sized("prpo.safe", deployed_);
    state.numbers("prpo.since_refresh", since_refresh_);
  }

 protected:
  DeployedPolicyRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                       std::vector<float> first_theta)
      : ScoreModelRanker(std::move(model), settings, keys, std::move(first_theta)),
        list_key_(keys.key(Purpose::kList)),
        refresh_rounds_(settings.bandit.refresh_rounds),
        deployed_(theta().begin(), theta().end()) {}

  std::span<const float> deployed() const { return deployed_; }
  /// The end of learn(), which deploys the learned policy when it is time.
  void end_policy_round() {
    end_round();
    if (++since_refresh_ < refresh_rounds_) return;
    since_refresh_ = 0;
    deployed_.assign(theta().begin(), theta().end());
  }

 private:
  ScoreLists lists() const override {
    return [model = shared_model(), deployed = deployed_, key = list_key_](
               ExecutionContext& context, const RankingTask& task, std::span<const double> /*learned*/,
               std::vector<std::int32_t>& list, std::vector<double>& propensity) {
      Scratch& scratch = context.scratch();
      const Scratch::Frame frame(scratch);
      const auto narrow = scratch.take<float>(task.docs.docs);
      model->score(context, deployed, task.docs, narrow);
      const auto scores = scratch.take<double>(narrow.size());
      std::copy(narrow.begin(), narrow.end(), scores.begin());
      draw_plackett_luce(scores, key, task.round, scratch, list, propensity);
    };
  }

  PhiloxKey list_key_;
  std::int64_t refresh_rounds_;

  // State.
  std::vector<float> deployed_;     // θ of the policy that shows lists
  std::int64_t since_refresh_ = 0;  // rounds
};

constexpr std::uint32_t kPlaceLists = 32;  // drawn to find the probabilities of places
constexpr std::uint32_t kStepQueries = 16;
constexpr std::uint32_t kStepLists = 2;  // drawn for each of them

/// The least share of examinations after so many lists, as in the authors' code.
double least_share(std::size_t lists) {
  return std::min(1.0, 10.0 / std::sqrt(static_cast<double>(lists)));
}

/// A ranker that learns from the whole log of its policies by estimate_relevance(). Each round takes a step
/// along the gradient of the expected DCG of Plackett-Luce lists, with the estimates as gains, on queries
/// drawn from the log. Users examine ranks with the probabilities of `debias`; without it, with those that
/// the log tells (Examination, in which a document attracts by its own clicks and those of all). Every list
/// counts as drawn from the policy that is deployed when it is learned from, which is not so of replayed
/// and imported lists, those of a service's other arms, and feedback that comes after a refresh.
/// Deviations: the paper trains again from the start at a few times, and corrects for trust bias, which it
/// takes as known; here steps go on, and clicks have no other cause than relevance. The paper's estimates
/// are not above the usual one, which makes no difference where none is clipped.
class InterventionAware : public DeployedPolicyRanker {
 public:
  InterventionAware(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                    std::vector<float> first_theta, std::int64_t ranks)
      : DeployedPolicyRanker(std::move(model), settings, keys, std::move(first_theta)),
        ranks_(ranks),
        debias_(settings.feedback.debias),
        place_key_(keys.key(Purpose::kResampling)),
        replay_key_(keys.key(Purpose::kReplay)),
        examined_(ranks),
        lists_(ranks),
        examination_(ranks) {
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      worth_.push_back(1.0 / std::log2(static_cast<double>(rank) + 2.0));
  }

  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    check(feedback, context.execution.scratch());
    const auto measured = context.clock.measure("train");
    count(context.execution, feedback);
    step_on_log(context.execution, feedback.round);
    end_policy_round();
    return {};
  }
  void fields(StateFields& state) override {
    DeployedPolicyRanker::fields(state);
    state.any("queries", names_);
    if (state.reads()) {
      queries_.assign(names_.size(), {});
      row_of_.clear();
    }
    for (std::size_t row = 0; row < queries_.size(); ++row) {
      ObservedQuery& query = queries_[row];
      state.any("docs", query.docs);
      const std::size_t docs = query.docs.size();
      if (state.reads()) {
        query.features.resize(docs * score_model().features());
        query.clicks.resize(docs);
        query.places.resize(docs * ranks_);
      }
      state.sized("features", query.features);
      state.sized("clicks", query.clicks);
      state.sized("places", query.places);
      state.numbers("lists", query.lists);
      state.require(docs > 0 && query.lists >= 1, "A query of its log has no documents or no lists.");
      if (state.reads() && names_[row] >= 0) row_of_.emplace(names_[row], static_cast<std::int32_t>(row));
    }
    state.any("log", log_);
    for (const std::int32_t row : log_)
      state.require(row >= 0 && row < std::ssize(queries_), "Its log has a query that it does not know.");
    reading_of_users_.fields(state, "");
    state.sized("examined", examined_);
    state.sized("lists_by_rank", lists_);
    state.numbers("clicks_of_all", clicks_);
  }
  /// Saves everything but the log.
  void save_for_lists(StateWriter& state) const override {
    StateFields fields(state);
    const_cast<InterventionAware*>(this)->DeployedPolicyRanker::fields(fields);
  }
  void load_for_lists(StateReader& state) override {
    StateFields fields(state);
    DeployedPolicyRanker::fields(fields);
  }

 private:
  /// The number of a query's entry, with rows_ for its documents. New ones are added.
  std::int32_t find(const QueryDocs& query) {
    const NamedQuery named(query);
    const bool has_name = named.identity.is_known();
    const auto next = static_cast<std::int32_t>(queries_.size());
    const std::int64_t name = named.identity.query;
    const std::int32_t entry = has_name ? row_of_.try_emplace(name, next).first->second : next;
    if (entry == next) {
      names_.push_back(name);
      queries_.emplace_back();
    }
    ObservedQuery& known = queries_[entry];
    if (entry == next) {
      known.docs.reserve(query.docs());
      known.features.reserve(query.docs() * query.features.features);
      known.clicks.reserve(query.docs());
      known.places.reserve(query.docs() * ranks_);
    }
    rows_.resize(query.docs());
    for (std::int32_t doc = 0; doc < query.docs(); ++doc) {
      const std::int64_t number = has_name ? named.identity.docs[doc] : doc;
      std::int32_t& row = rows_[doc];
      row = doc;  // in most cases
      if (row >= std::ssize(known.docs) || known.docs[row] != number) {
        const auto found = std::find(known.docs.begin(), known.docs.end(), number);
        row = static_cast<std::int32_t>(found - known.docs.begin());
      }
      if (row < std::ssize(known.docs)) continue;
      const auto features = query.features.doc(doc);
      known.docs.push_back(number);
      known.features.insert(known.features.end(), features.begin(), features.end());
      known.clicks.push_back(0.0);
      known.places.resize(known.places.size() + ranks_);
    }
    return entry;
  }
  /// The probability that users examine each rank, and the clicks of all documents for each examination.
  void find_examination() {
    double seen = 0.0;
    for (std::size_t rank = 0; rank < examination_.size(); ++rank) {
      examination_[rank] = debias_.empty() ? (examined_[rank] + 1.0) / (lists_[rank] + 1.0)
                                           : debias_[std::min(rank, debias_.size() - 1)];
      seen += lists_[rank] * examination_[rank];
    }
    usual_ = seen > 0.0 ? clicks_ / seen : 0.0;
  }
  /// Learns how users read lists.
  void read(const ObservedQuery& known, std::span<const std::int32_t> shown,
            std::span<const std::uint8_t> clicks) {
    constexpr double kWeight = 2.0;  // examinations that the attraction of all documents counts for
    constexpr double kLeast = 1e-3;
    attraction_.clear();
    for (const std::int32_t doc : shown) {
      const std::int32_t row = rows_[doc];
      const double* places = known.places.data() + row * ranks_;
      const double examined = std::inner_product(examination_.begin(), examination_.end(), places, 0.0);
      const double attraction = (known.clicks[row] + kWeight * usual_) / (examined + kWeight);
      attraction_.push_back(std::clamp(attraction, kLeast, 1.0 - kLeast));
    }
    reading_of_users_.learn(attraction_, clicks, reading_);
    for (std::size_t rank = 0; rank < clicks.size(); ++rank) examined_[rank] += reading_.examined[rank];
  }
  /// Adds a list to the log, with the places that its policy could have given to each document.
  void count(ExecutionContext& context, const Feedback& feedback) {
    const std::size_t most = std::min<std::size_t>(feedback.shown.size(), ranks_);
    const auto shown = feedback.shown.first(most);
    const auto clicks = feedback.clicks.first(most);
    const auto docs = static_cast<std::size_t>(feedback.query.docs());
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto scores = scratch.take<double>(docs);
    const auto keys = scratch.take<double>(docs);
    const auto list = scratch.take<std::int32_t>(docs);
    score_with(context, deployed(), feedback.query, feedback.round, scores);
    const std::int32_t entry = find(feedback.query);
    ObservedQuery& known = queries_[entry];
    find_examination();
    if (debias_.empty()) read(known, shown, clicks);

    places_.assign(docs * ranks_, 0.0);
    const PhiloxKey key = key_of_round(place_key_, feedback.round);
    for (std::uint32_t draw = 0; draw < kPlaceLists; ++draw) {
      plackett_luce_keys(scores, key, draw, keys);
      order_by_score(keys, list, scratch);
      add_places(scores, list, ranks_, 1.0 / kPlaceLists, scratch, places_);
    }
    for (std::size_t rank = 0; rank < most; ++rank) {
      for (std::size_t doc = 0; doc < docs; ++doc)
        known.places[rows_[doc] * ranks_ + rank] += places_[doc * ranks_ + rank];
      const double click = clicks[rank] != 0 ? 1.0 : 0.0;
      known.clicks[rows_[shown[rank]]] += click;
      clicks_ += click;
      lists_[rank] += 1.0;
    }
    ++known.lists;
    log_.push_back(entry);
  }
  void step_on_log(ExecutionContext& context, std::uint32_t round) {
    find_examination();
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto gradient = scratch.take<double>(theta().size());
    std::fill(gradient.begin(), gradient.end(), 0.0);
    const PhiloxKey list_key = key_of_round(replay_key_, round);
    const double least = least_share(log_.size());
    for (std::uint32_t drawn = 0; drawn < kStepQueries; ++drawn) {
      RngStream draws(replay_key_, round, drawn);
      const ObservedQuery& known = queries_[log_[draws.index_of(std::ssize(log_))]];
      const auto docs = std::ssize(known.docs);
      const FeatureMatrix features{known.features.data(), docs, score_model().features()};
      const Scratch::Frame of_query(scratch);
      const auto narrow = scratch.take<float>(docs);
      const auto scores = scratch.take<double>(docs);
      const auto keys = scratch.take<double>(docs);
      const auto weights = scratch.take<double>(docs);
      const auto list = scratch.take<std::int32_t>(docs);
      score_model().score(context, theta(), features, narrow);
      std::copy(narrow.begin(), narrow.end(), scores.begin());
      std::fill(weights.begin(), weights.end(), 0.0);
      relevance_.resize(docs);
      estimate_relevance(known, examination_, usual_, least, relevance_);
      for (std::uint32_t number = 0; number < kStepLists; ++number) {
        plackett_luce_keys(scores, list_key, drawn * kStepLists + number, keys);
        order_by_score(keys, list, scratch);
        add_reward_gradient(scores, list, worth_, relevance_, 1.0 / (kStepQueries * kStepLists), scratch,
                            weights);
      }
      score_model().add_gradient(context, theta(), features, weights, gradient);
    }
    move_along(gradient);
  }

  std::int64_t ranks_;
  std::vector<double> debias_;
  PhiloxKey place_key_;
  PhiloxKey replay_key_;
  std::vector<double> worth_;  // by rank

  // State.
  std::vector<std::int64_t> names_;  // of the queries; −1 where they have none
  std::vector<ObservedQuery> queries_;
  std::vector<std::int32_t> log_;  // the query of each round
  Examination reading_of_users_;
  std::vector<double> examined_;  // by rank: expected examinations, unless they are given
  std::vector<double> lists_;     // by rank: lists that had it
  double clicks_ = 0.0;

  std::map<std::int64_t, std::int32_t> row_of_;  // of a named query
  std::vector<std::int32_t> rows_;               // in its entry, of the documents at hand
  std::vector<double> examination_;
  double usual_ = 0.0;
  Examination::Reading reading_;
  std::vector<double> relevance_;
  std::vector<double> attraction_;
  std::vector<double> places_;
};

}  // namespace

void estimate_relevance(const ObservedQuery& query, std::span<const double> examination, double usual,
                        double least, std::span<double> relevance) {
  const std::size_t ranks = examination.size();
  for (std::size_t doc = 0; doc < query.docs.size(); ++doc) {
    const double* places = query.places.data() + doc * ranks;
    const double examined = std::inner_product(examination.begin(), examination.end(), places, 0.0);
    relevance[doc] = (query.clicks[doc] - usual * examined) /
                     std::max(examined, least * static_cast<double>(query.lists));
  }
}

std::unique_ptr<OnlineRanker> make_intervention_aware(const RankerRequest& request) {
  return make_on_first_model<InterventionAware>(request, request.cutoff);
}

void set_intervention_aware_defaults(RankerSettings& settings, const DefaultsContext& /*context*/) {
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.3;
  settings.trainer.learning_rate_decay = 1.0;
}

}  // namespace olrank
