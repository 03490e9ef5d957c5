#include "models/clickgp/click_regression.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "core/feedback/examination.h"
#include "core/feedback/preference_pairs.h"
#include "core/math/any_cpu.h"
#include "core/online/online_ranker.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/clickgp/click_ranking.h"
#include "models/files/model_file.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {
namespace {

constexpr double kStartLead = 10.0;
constexpr std::string_view kStart = "clickgp.start";
constexpr std::string_view kWorth = "clickgp.worth";
constexpr std::string_view kStartFile = "clickgp.start_file";

/// A query remembers at most so many documents, of which its rounds cost more each. With a memory limit it
/// has a share of it, so that it loses documents of its own before other queries are forgotten.
std::int64_t most_docs_of(const RankerSettings& settings, std::int64_t features) {
  constexpr double kMost = 1024.0;
  constexpr double kLeast = 64.0;
  constexpr double kShare = 1.0 / 16.0;
  const double limit = settings.click.memory_limit * 1e6;
  if (limit <= 0.0) return static_cast<std::int64_t>(kMost);
  const double of_query = clickgp_bytes(settings, features, 0.0, 1.0);
  const double of_doc = clickgp_bytes(settings, features, 1.0, 0.0);
  const double room = (limit - of_query) / of_doc;
  return static_cast<std::int64_t>(std::min(room, std::clamp(kShare * room, kLeast, kMost)));
}

ClickSchedule schedule_of(const ClickFeatures& features, double half_life) {
  ClickSchedule schedule;
  const bool is_additive = features.is_additive();
  // Where solutions are cheap, they are more frequent, as exploration gains by a factor that is new.
  constexpr std::int64_t kNarrow = 300;
  const bool is_narrow = features.columns() <= kNarrow;
  if (is_narrow) {
    schedule.lists_per_interval = 64;
    schedule.most_solve_interval = is_additive ? 8 : 2;
  }
  // A solution costs D³/3: beyond some 700 columns they come so rarely that rounds cost D² or so.
  constexpr double kColumns = 400.0;
  constexpr double kRarest = 64.0;
  const double least = std::clamp(std::pow(static_cast<double>(features.columns()) / kColumns, 4.0),
                                  is_additive ? 2.0 : 1.0, kRarest);
  schedule.least_solve_interval = static_cast<std::uint64_t>(least);
  schedule.most_solve_interval = std::max(schedule.least_solve_interval, schedule.most_solve_interval);
  if (is_additive || !is_narrow) {
    schedule.growth = 1.5;
    schedule.late_growth = is_narrow ? 1.5 : 2.0;
  }
  if (half_life > 0.0) schedule.longest_interval = half_life / 4.0;
  return schedule;
}

class FrozenClickGp : public FrozenRanker {
 public:
  FrozenClickGp(const RankerSettings& settings, const TrialKeys& keys, ClickState state, ModelTensors model)
      : settings_(settings), keys_(keys), state_(std::move(state)), model_(std::move(model)) {}

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    ClickRanking of_query(settings_, keys_, task.cutoff);
    of_query.look(state_, task.docs, task.identity);
    const RankedList made = of_query.make(context, state_, task.round, task.fair, task.explore);
    ranking.scores.assign(of_query.scores().begin(), of_query.scores().end());
    ranking.by_score.assign(of_query.by_score().begin(), of_query.by_score().end());
    if (made.stated_orders.empty()) {
      of_query.order_probabilities(state_, of_query.list().shown(made), ranking.probabilities);
    } else {
      ranking.probabilities.assign(of_query.probabilities().begin(), of_query.probabilities().end());
    }
    of_query.list().hand_over(made, ranking);
  }
  bool score_known(FeatureMatrix docs, const QueryIdentity& identity,
                   std::span<double> scores) const override {
    ClickRanking of_query(settings_, keys_, 1);
    of_query.look(state_, docs, identity);
    std::copy(of_query.scores().begin(), of_query.scores().end(), scores.begin());
    return true;
  }
  ModelTensors model() const override { return model_; }

 private:
  RankerSettings settings_;
  TrialKeys keys_;
  ClickState state_;
  ModelTensors model_;
};

/// A Bayesian click model with a memory of documents: logit P(click | looked at) = φ·θ + u_d + b_q. A
/// linear and an additive model run side by side, weighted by how well they predicted the clicks so far.
/// How users read is learned, too, and all strengths follow from the evidence. If users change, the
/// evidence is forgotten. No setting is about the data.
class ClickGp : public OnlineRanker {
 public:
  ClickGp(const RankerSettings& settings, std::int64_t features, const TrialKeys& keys, std::int64_t cutoff,
          const std::shared_ptr<const ClickStart>& start = {})
      : settings_(settings), keys_(keys), features_(features), ranking_(settings, keys, cutoff) {
    if (start) check_start(*start);
    start_models(start);
    state_.half_life = settings.click.forget;
    update_weights();
    const auto least = clickgp_bytes(settings, features, static_cast<double>(cutoff), 1.0);
    const double limit = settings.click.memory_limit * 1e6;
    if (limit > 0.0 && limit < least) {
      throw_error<InvalidArgument>(
          "Ranker '{}' has memory_limit = {} MB, but one query with {} of {} takes {}: give it more, or 0 "
          "for no limit.",
          settings.name, settings.click.memory_limit, counted(cutoff, "document"),
          counted(features, "feature"), readable_bytes(least));
    }
    most_docs_ = most_docs_of(settings, features);
  }

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override {
    {
      const auto measured = context.clock.measure("score");
      const NamedQuery named(query);
      ranking_.look(state_, query.features, named.identity);
    }
    const auto measured = context.clock.measure("rank");
    return ranking_.make(context.execution, state_, round, query.fair, true);
  }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override {
    ScoreModelRanker::check(feedback, context.execution.scratch());
    const auto measured = context.clock.measure("train");
    const NamedQuery named(feedback.query);
    const QueryIdentity& identity = named.identity;
    ranking_.look(state_, feedback.query.features, identity);

    if (state_.half_life > 0.0) {
      const double share = 1.0 - std::exp2(-1.0 / state_.half_life);
      for (std::size_t model = 0; model < models_.size(); ++model) {
        models_[model].forget(share);
        log_likelihoods_[model] *= 1.0 - share;
      }
      worth_ *= 1.0 - share;
      clicks_ *= 1.0 - share;
    }
    for (std::size_t model = 0; model < models_.size(); ++model) {
      models_[model].read_list(ranking_.views()[model], feedback.shown, feedback.clicks, mean_worth(),
                               readings_[model]);
      log_likelihoods_[model] += readings_[model].log_likelihood;
    }
    if (has_changed(identity, feedback.clicks)) {
      forget_all(context.execution);
      ranking_.forget_look();
      ranking_.look(state_, feedback.query.features, identity);  // products may be other ones now
    }
    ++state_.learned;

    KnownQuery once;  // a query without a name, or documents that a query forgets
    once.sites.resize(models_.size());
    KnownQuery& known =
        identity.is_known() ? state_.memory.edit(identity.query, std::ssize(models_)) : once;
    const std::int64_t bytes_before = known.docs.empty() ? 0 : known.bytes();
    if (known.docs.empty()) {
      for (std::size_t model = 0; model < models_.size(); ++model)
        models_[model].see_documents(std::span(ranking_.views()[model].rows)
                                         .first(feedback.query.docs() * models_[model].belief().columns()));
    }
    known.fade_to(state_.learned, state_.half_life);
    for (std::size_t model = 0; model < models_.size() && !known.docs.empty(); ++model) {
      known.sites[model].departure = ranking_.views()[model].departures;
      known.sites[model].query_departure = ranking_.views()[model].query_departure;
    }
    ClickRegression::Change change = remember(known, identity, feedback);
    known.learned_at = state_.learned;
    if (identity.is_known() && std::ssize(known.docs) > most_docs_) {
      for (std::size_t model = 0; model < models_.size(); ++model)
        models_[model].take_out(ranking_.views()[model], change, known);
      once = split(known);
      replace(change_of_all(once), once);
      change = change_of_all(known);
    }
    replace(change, known);
    if (identity.is_known()) {
      memory_bytes_ += known.bytes() - bytes_before;
      keep_within_limit(context.execution);
    }
    if (!once.docs.empty()) {
      const KnownQuery* const forgotten = &once;
      for (ClickRegression& model : models_)
        model.retire(context.execution, {&forgotten, 1}, state_.learned);
    }
    for (std::size_t model = 0; model < models_.size(); ++model) {
      models_[model].follow(context.execution, state_.memory, state_.learned, state_.half_life);
      publish(model);
    }
    update_weights();
    return {};
  }
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override {
    detail = {};
    detail.scores.assign(ranking_.scores().begin(), ranking_.scores().end());
    if (!full) return;
    for (const ClickBelief& belief : state_.beliefs)
      detail.theta.emplace_back(belief.theta().begin(), belief.theta().end());
    std::vector<std::int32_t> all(query.docs());
    std::iota(all.begin(), all.end(), 0);
    ranking_.order_probabilities(state_, all, detail.probability);
    ranking_.list().write_matrix(ranking_.by_score(), detail.certain);
  }
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override {
    context.for_blocks(docs.lists(), 4, [&](std::int64_t begin, std::int64_t end, int) {
      std::vector<float> scaled;
      AlignedVector<double> rows;
      std::vector<double> of_model;
      for (std::int64_t list = begin; list < end; ++list) {
        const std::int64_t first = docs.list_begin(list);
        const std::int64_t count = docs.list_end(list) - first;
        state_.beliefs.back().features().see(docs.part(first, first + count), scaled);
        std::vector<double> sum(count);
        for (std::size_t model = 0; model < state_.beliefs.size(); ++model) {
          const ClickBelief& belief = state_.beliefs[model];
          const std::vector<float> means(belief.features().centred());  // they move no order
          rows.resize(count * belief.columns());
          of_model.resize(count);
          belief.features().expand(scaled, means, rows);
          belief.score_rows(rows, of_model);
          const double constant = belief.theta().front();
          for (std::int64_t doc = 0; doc < count; ++doc)
            sum[doc] += state_.weights[model] * (of_model[doc] - constant);
        }
        for (std::int64_t doc = 0; doc < count; ++doc) scores[first + doc] = static_cast<float>(sum[doc]);
      }
    });
  }
  std::int64_t parameters() const override {
    std::int64_t count = 0;
    for (const ClickBelief& belief : state_.beliefs) count += belief.columns();
    return count;
  }
  ModelTensors model() const override {
    // A linear model is linear in scaled inputs, so its file has cosines, too, of weight 0.
    std::vector<double> weights(features_ * (1 + HigherCosines::kTerms));
    std::vector<double> of_products;
    std::vector<InputPair> products;
    double start_weight = 0.0;
    const auto add_product = [&](InputPair pair, double weight) {
      const auto known = std::find(products.begin(), products.end(), pair);
      if (known != products.end()) {
        of_products[known - products.begin()] += weight;
        return;
      }
      products.push_back(pair);
      of_products.push_back(weight);
    };
    for (std::size_t model = 0; model < state_.beliefs.size(); ++model) {
      const ClickBelief& belief = state_.beliefs[model];
      for (std::int64_t c = 0; c < belief.features().terms(); ++c) {
        const auto block = static_cast<int>(c / features_);
        const double factor = block == 0 ? 1.0 : ClickFeatures::cosine_factor(block - 1);
        weights[c] += state_.weights[model] * factor * belief.theta()[c + 1];
      }
      if (const ClickStart* of_ranker = belief.features().start()) {
        const double weight = state_.weights[model] * belief.theta()[belief.features().centred()];
        start_weight += weight;
        const std::vector<float>* start = &of_ranker->weights;
        for (std::size_t c = 0; c < std::min(start->size(), weights.size()); ++c)
          weights[c] += weight * double{(*start)[c]};
        const std::size_t count = (std::max(start->size(), weights.size()) - weights.size()) / 3;
        for (std::size_t p = weights.size(); p < weights.size() + count; ++p) {
          add_product({static_cast<std::int32_t>((*start)[p + count]),
                       static_cast<std::int32_t>((*start)[p + 2 * count])},
                      weight * double{(*start)[p]});
        }
      }
      const ProductPlaces* places = belief.features().products();
      for (std::size_t p = 0; places != nullptr && p < places->size(); ++p) {
        const auto [a, b] = (*places)[p];
        const double weight =
            state_.weights[model] *
            belief.theta()[belief.features().products_column() + static_cast<std::int64_t>(p)];
        if (b < -1) {
          weights[(-1 - b) * features_ + a] += ClickFeatures::cosine_factor(-2 - b) * weight;
        } else if (a >= 0) {
          add_product({a, b}, weight);
        }
      }
    }
    weights.insert(weights.end(), of_products.begin(), of_products.end());
    ModelTensors model = additive_tensors(std::vector<float>(weights.begin(), weights.end()), products);
    const ClickStart* start = state_.beliefs.back().features().start();
    if (start != nullptr && start->scorer) add_start(start->file, static_cast<float>(start_weight), model);
    return model;
  }
  std::vector<RankerFigure> figures(ExecutionContext& /*context*/) const override {
    std::vector<RankerFigure> figures;
    const ClickFeatures& widest = state_.beliefs.back().features();
    const std::size_t linear = widest.start() == nullptr ? 0 : 1;
    const Departures& departures = state_.beliefs[linear].departures();
    figures.push_back({"document_variance", departures.document});
    figures.push_back({"query_variance", departures.query});
    if (linear == 1) figures.push_back({"start_weight", state_.weights.front()});
    if (widest.is_additive()) figures.push_back({"additive_weight", state_.weights.back()});
    if (const ProductPlaces* products = widest.products()) {
      const auto free =
          std::count_if(products->begin(), products->end(), [](InputPair pair) { return pair.second < 0; });
      figures.push_back({"products", static_cast<double>(std::ssize(*products) - free)});
    }
    figures.push_back({"changes", changes_});
    figures.push_back({"known_queries", static_cast<double>(state_.memory.queries())});
    return figures;
  }
  std::shared_ptr<const FrozenRanker> freeze() const override {
    return std::make_shared<FrozenClickGp>(settings_, keys_, state_, model());
  }
  /// Inputs are scaled within the query, by all of its documents.
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override {
    state.numbers("clickgp.learned", state_.learned);
    if (state.reads()) {
      // A saved ranker needs no model file.
      if (state.reader().is_next(kStart)) {
        auto start =
            std::make_shared<const ClickStart>(ClickStart{state.reader().get<float>(kStart), {}, {}});
        state.require(ClickFeatures::is_start(start->weights, features_),
                      "Its start model has other weights.");
        start_models(start);
      } else if (state.reader().is_next(kStartFile)) {
        std::string file = state.reader().get_text(kStartFile);
        const ClickStart* given = state_.beliefs.back().features().start();
        if (given == nullptr || given->file != file)
          start_models(
              ClickStart::of_file(std::move(file), "a saved ranker", code_if(settings_.trust_code)));
        check_start(*state_.beliefs.back().features().start());
      }
    } else if (const ClickStart* start = state_.beliefs.back().features().start()) {
      if (start->scorer) {
        state.writer().put_text(kStartFile, start->file);
      } else {
        state.writer().put(kStart, start->weights);
      }
    }
    state.sized("clickgp.log_likelihoods", log_likelihoods_);
    alarm_.fields(state, "clickgp.alarm");
    state.numbers("clickgp.changes", changes_);
    state.numbers("clickgp.changed_at", state_.changed_at);
    state.numbers("clickgp.latest_query", latest_query_);
    // States of version 0.2 lack it.
    if (state.reads()) worth_ = clicks_ = 0.0;
    if (!state.reads() || state.reader().is_next(kWorth)) state.numbers(kWorth, worth_, clicks_);
    for (std::size_t model = 0; model < models_.size(); ++model) {
      models_[model].fields(state);
      if (state.reads()) publish(model);
    }
    state_.memory.fields(state, seen_, centred_, std::ssize(models_));
    if (!state.reads()) return;
    ranking_.forget_look();
    memory_bytes_ = 0;
    for (const ClickMemory::Entry& entry : state_.memory.edit_all()) memory_bytes_ += entry.known->bytes();
    update_weights();
    const std::int64_t saved = state_.memory.queries();
    ExecutionContext context;
    keep_within_limit(context);  // which may be another one now
    if (state_.memory.queries() < saved)
      log_info("Ranker '{}' remembers {} of {} saved queries, those learned last.", settings_.name,
               state_.memory.queries(), saved);
  }

 private:
  void check_start(const ClickStart& start) const {
    if (!start.scorer || start.scorer->features() == features_) return;
    throw_error<InvalidArgument>(
        "Ranker '{}' starts from a model of {}, but has {}: choose another model, or the features that "
        "the model was trained with.",
        settings_.name, counted(start.scorer->features(), "input"), features_);
  }
  void start_models(const std::shared_ptr<const ClickStart>& start) {
    models_.clear();
    state_.beliefs.clear();
    for (const ClickFeatures& of_model : click_features_of(settings_, features_, start)) {
      models_.emplace_back(of_model, schedule_of(of_model, settings_.click.forget), models_.size());
      state_.beliefs.push_back(models_.back().belief());
      centred_ = of_model.centred();
      seen_ = of_model.seen();
    }
    log_likelihoods_.assign(models_.size(), 0.0);
    // Others have to predict better by so much before they count as much as the start model alone.
    if (start) log_likelihoods_.front() = kStartLead;
    readings_.resize(models_.size());
  }
  ClickRegression::Change remember(KnownQuery& known, const QueryIdentity& identity,
                                   const Feedback& feedback) {
    ClickRegression::Change change;
    change.before.assign(ranking_.known_rows().begin(), ranking_.known_rows().end());
    const auto place_in_memory = [&](std::int32_t doc) {
      const std::int64_t name = identity.is_known() ? identity.docs[doc] : doc;
      const std::int32_t place = known.place_of(name);
      return place >= 0 ? place : known.add(name, seen_);
    };
    for (std::size_t rank = 0; rank < feedback.shown.size(); ++rank) {
      const std::int32_t place = place_in_memory(feedback.shown[rank]);
      const bool clicked = feedback.clicks[rank] != 0;
      // A click counts as so many, each with its look.
      const double worth = clicked ? click_weight(feedback, {}, rank) : 1.0;
      known.clicks[place] += clicked ? worth : 0.0;
      worth_ += clicked ? worth : 0.0;
      clicks_ += clicked ? 1.0 : 0.0;
      for (std::size_t model = 0; model < models_.size(); ++model) {
        constexpr double kLeast = 1e-6;
        known.sites[model].examined[place] += std::max(worth * readings_[model].examined[rank], kLeast);
      }
    }
    change.changed.resize(known.docs.size());
    change.now.assign(known.docs.size(), -1);
    for (const std::int32_t doc : feedback.shown) change.changed[place_in_memory(doc)] = 1;
    // Documents at hand are as they are now.
    for (std::int64_t doc = 0; doc < feedback.query.docs(); ++doc) {
      const std::int32_t place = known.place_of(identity.is_known() ? identity.docs[doc] : doc);
      if (place < 0) continue;
      std::copy_n(ranking_.scaled().begin() + doc * seen_, seen_, known.scaled.begin() + place * seen_);
      change.now[place] = static_cast<std::int32_t>(doc);
    }
    const bool has_means = std::equal(known.means.begin(), known.means.end(), ranking_.means().begin());
    known.means.assign(ranking_.means().begin(), ranking_.means().end());
    for (std::size_t place = 0; place < change.now.size(); ++place) {
      std::int32_t& row = change.now[place];
      if (row >= 0) continue;
      row = has_means ? change.before[place]
                      : ranking_.add_rows(state_, std::span(known.scaled).subspan(place * seen_, seen_),
                                          known.means);
    }
    if (!identity.is_known() || (known.shown_at.empty() && std::ssize(known.docs) <= most_docs_))
      return change;
    known.shown_at.resize(known.docs.size());
    for (const std::int32_t doc : feedback.shown) known.shown_at[place_in_memory(doc)] = state_.learned;
    return change;
  }
  /// All documents of a query whose part is in no sum.
  ClickRegression::Change change_of_all(const KnownQuery& known) {
    ClickRegression::Change change;
    change.now.resize(known.docs.size());
    std::iota(change.now.begin(), change.now.end(), ranking_.add_rows(state_, known.scaled, known.means));
    change.changed.assign(known.docs.size(), 1);
    return change;
  }
  void replace(const ClickRegression::Change& change, KnownQuery& known) {
    for (std::size_t model = 0; model < models_.size(); ++model)
      models_[model].replace(ranking_.views()[model], change, known);
  }
  /// Takes the documents out that the query forgets: an eighth, so that this is rare.
  KnownQuery split(KnownQuery& known) {
    if (!std::exchange(has_warned_, true)) {
      log_warning(
          "Ranker '{}': a query has had more than {} documents (list {}). Of such queries it forgets the "
          "documents shown least recently, and keeps what they taught the model. If one text stands for "
          "many questions, send the text of each question.",
          settings_.name, most_docs_, state_.learned);
    }
    return known.split(most_docs_ - most_docs_ / 8);
  }
  /// Whether users have changed, so that what was learned is out of date.
  bool has_changed(const QueryIdentity& identity, std::span<const std::uint8_t> clicks) {
    // A query that comes several times in a row, such as in a session, counts with one list.
    if (identity.is_known() && identity.query == latest_query_) return false;
    latest_query_ = identity.is_known() ? identity.query : -1;
    std::vector<double> predicted(clicks.size());
    for (std::size_t model = 0; model < models_.size(); ++model) {
      for (std::size_t rank = 0; rank < clicks.size(); ++rank)
        predicted[rank] += state_.weights[model] * readings_[model].predicted[rank];
    }
    return alarm_.learn(predicted, clicks);
  }
  void forget_all(ExecutionContext& context) {
    ++changes_;
    state_.changed_at = state_.learned;
    log_info("Users have changed: ranker '{}' forgets the evidence of {} lists.", settings_.name,
             state_.learned);
    worth_ = clicks_ = 0.0;
    for (const ClickMemory::Entry& entry : state_.memory.edit_all()) entry.known->fade(0.0);
    for (std::size_t model = 0; model < models_.size(); ++model) {
      models_[model].forget_all(context, state_.memory, state_.learned, state_.half_life);
      log_likelihoods_[model] = 0.0;
      publish(model);
    }
  }
  double mean_worth() const { return worth_ > 0.0 ? worth_ / clicks_ : 1.0; }
  void keep_within_limit(ExecutionContext& context) {
    const double limit = settings_.click.memory_limit * 1e6;
    if (limit <= 0.0 || static_cast<double>(memory_bytes_) <= limit) return;
    // An eighth more than necessary, so that this is rare.
    std::vector<ClickMemory::Entry> queries = state_.memory.edit_all();
    std::sort(queries.begin(), queries.end(), [](const auto& a, const auto& b) {
      return a.known->learned_at < b.known->learned_at ||
             (a.known->learned_at == b.known->learned_at && a.query < b.query);
    });
    constexpr double kKept = 0.875;
    std::vector<std::int64_t> names;
    std::vector<const KnownQuery*> forgotten;
    for (const ClickMemory::Entry& entry : queries) {
      // The latest query stays.
      if (static_cast<double>(memory_bytes_) <= kKept * limit || entry.known->learned_at == state_.learned)
        break;
      memory_bytes_ -= entry.known->bytes();
      names.push_back(entry.query);
      forgotten.push_back(entry.known);
    }
    for (ClickRegression& model : models_) model.retire(context, forgotten, state_.learned);
    for (const std::int64_t name : names) state_.memory.erase(name);
  }
  void update_weights() {
    const double best = *std::max_element(log_likelihoods_.begin(), log_likelihoods_.end());
    state_.weights.resize(models_.size());
    double sum = 0.0;
    for (std::size_t model = 0; model < models_.size(); ++model)
      sum += state_.weights[model] = exp_of(log_likelihoods_[model] - best);
    for (double& weight : state_.weights) weight /= sum;
  }
  void publish(std::size_t model) { state_.beliefs[model] = models_[model].belief(); }

  RankerSettings settings_;
  TrialKeys keys_;
  std::int64_t features_;
  std::int64_t centred_;  // of the widest model
  std::int64_t seen_;     // numbers of a document
  ClickState state_;
  std::vector<ClickRegression> models_;
  std::vector<double> log_likelihoods_;  // of the models
  std::int64_t memory_bytes_ = 0;
  std::int64_t most_docs_ = 0;  // of a query
  bool has_warned_ = false;     // that one has had more
  ClickRanking ranking_;
  std::vector<Examination::Reading> readings_;
  ChangeAlarm alarm_;
  std::int64_t latest_query_ = -1;
  double changes_ = 0.0;  // of users that the alarm has noticed
  double worth_ = 0.0;    // of the clicks so far
  double clicks_ = 0.0;
};

}  // namespace

std::vector<ClickFeatures> click_features_of(const RankerSettings& settings, std::int64_t features,
                                             const std::shared_ptr<const ClickStart>& start) {
  std::vector<ClickFeatures> of_models;
  if (start) of_models.emplace_back(features, ClickInputs::kNone, start);
  of_models.emplace_back(features, ClickInputs::kLinear, start);
  if (settings.click.terms == ClickTerms::kAdditive)
    of_models.emplace_back(features, ClickInputs::kAdditive, start);
  if (settings.click.terms == ClickTerms::kProducts)
    of_models.emplace_back(features, ClickInputs::kProducts, start);
  return of_models;
}

double clickgp_bytes(const RankerSettings& settings, std::int64_t features, double docs, double queries) {
  const std::vector<ClickFeatures> of_models = click_features_of(settings, features);
  const auto models = std::ssize(of_models);
  const std::int64_t of_query = KnownQuery::bytes_of(0, features, of_models.back().centred(), models);
  const std::int64_t of_doc =
      KnownQuery::bytes_of(1, features, of_models.back().centred(), models) - of_query;
  return queries * static_cast<double>(of_query) + docs * static_cast<double>(of_doc);
}

std::unique_ptr<OnlineRanker> make_clickgp(const RankerRequest& request) {
  const auto given = request.dependencies.first_thetas;
  std::shared_ptr<const ClickStart> start = request.dependencies.click_start;
  if (!given.empty()) start = std::make_shared<const ClickStart>(ClickStart{given.front(), {}, {}});
  return std::make_unique<ClickGp>(request.settings, request.features, request.keys, request.cutoff, start);
}

void set_clickgp_defaults(RankerSettings& settings, const DefaultsContext& /*context*/) {
  settings.explore.delta = 0.05;
}

}  // namespace olrank
