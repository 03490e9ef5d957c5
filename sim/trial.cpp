#include "sim/trial.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/metrics/external_metric.h"
#include "core/metrics/score_files.h"

namespace olrank {
namespace {

constexpr std::string_view kStated = "certainty.stated";

MetricOptions offline_options(const TrialSettings& settings, const TrialData& data) {
  MetricOptions options;
  options.cutoffs = {settings.cutoff};
  options.empty_queries = settings.empty_queries;
  std::copy_if(settings.metrics.begin(), settings.metrics.end(), std::back_inserter(options.named),
               [](const NamedMetric& metric) { return metric.kind != MetricKind::kOwn; });
  const bool whole = std::any_of(options.named.begin(), options.named.end(),
                                 [](const NamedMetric& metric) { return metric.whole_list(); });
  options.metrics = whole ? MetricSet::kAll : MetricSet::kTop;
  options.max_grade = std::max(data.max_grade, data.eval_set.max_grade());  // ERR is the same on all parts
  return options;
}

OnlineOptions online_options(const TrialSettings& settings, const TrialData& data) {
  return {.cutoff = settings.cutoff, .discount = settings.discount, .max_grade = data.max_grade};
}

}  // namespace

Trial::Trial(const TrialSettings& settings, const TrialData& data, const TrialUsers& users,
             const TrialKeys& keys, OnlineRanker& ranker, ExecutionContext& execution)
    : settings_(settings),
      data_(data),
      train_names_(names_of(data.train)),
      users_(users),
      click_key_(keys.key(Purpose::kClick)),
      ranker_(ranker),
      execution_(execution),
      online_(online_options(settings, data)),
      random_(online_options(settings, data)),
      evaluator_(offline_options(settings, data)),
      eval_scores_(data.eval_set.docs()) {}

bool Trial::evaluation_due() const {
  return evaluated_round_ != round_ && (round_ % settings_.eval_every == 0 || finished());
}

QueryDocs Trial::query_docs(std::int64_t query) {
  return {.query = query,
          .first_doc = data_.train.offset(query),
          .features = data_.train.rows_of(query),
          .names = &train_names_};
}

void Trial::score_eval_set() {
  ranker_.score_part(execution_, data_.eval_set.all_rows(), names_of(data_.eval_set), eval_scores_);
}

std::int64_t Trial::query_of(std::int64_t round) const {
  return users_.recorded != nullptr ? users_.recorded->at(round - 1).query
                                    : users_.queries->query_of(static_cast<std::uint32_t>(round));
}

const PlayedRound& Trial::play_round(RoundDetail* detail, bool full_detail) {
  ++round_;
  played_ = PlayedRound{};
  played_.round = static_cast<std::uint32_t>(round_);
  RoundContext context{execution_, clock_};
  if (users_.recorded != nullptr) {
    play_recorded(context);
  } else {
    play_simulated(context, detail, full_detail);
  }
  const RandomNdcg random = random_.observe(data_.train.grades_of(played_.query));
  if (users_.recorded == nullptr) last_lists_.observe(played_.ndcg, random);
  pairs_ += std::ssize(played_.learned.pairs);
  return played_;
}

void Trial::play_simulated(RoundContext& context, RoundDetail* detail, bool full_detail) {
  played_.query = users_.queries->query_of(played_.round);
  QueryDocs query = query_docs(played_.query);
  query.person = users_.clicks->person(click_key_, played_.round);
  const QueryGrades grades{data_.train.grades_of(played_.query), &query};
  FairRound fair;
  if (users_.fairness != nullptr) {
    played_.groups = std::span(data_.groups).subspan(query.first_doc, query.docs());
    fair = {played_.groups, &users_.fairness->rule, exposure_.unfairness()};
    query.fair = &fair;
  }
  const RankedList list = ranker_.rank(context, query, played_.round);
  const auto shown = static_cast<std::size_t>(std::min(settings_.cutoff, query.docs()));
  shown_.assign(list.docs.begin(), list.docs.begin() + static_cast<std::ptrdiff_t>(shown));
  const auto known = list.propensity.first(std::min(shown, list.propensity.size()));
  propensity_.assign(known.begin(), known.end());
  {
    const auto measured = context.clock.measure("click");
    users_.clicks->click(grades, shown_, click_key_, played_.round, log_);
    played_.ndcg = online_.observe(grades.of_doc, list.docs);
    count_examined(grades);
    if (list.certainty) count_certainty(*list.certainty);
    count_contradicted(list, grades);
    certainty_.turned_decisions.count += list.turned_decisions.count;
    certainty_.turned_decisions.total += list.turned_decisions.total;
    width_ratios_.insert(width_ratios_.end(), list.width_ratios.begin(), list.width_ratios.end());
    if (users_.fairness != nullptr) count_fairness(list);
  }
  played_.shown = shown_;
  played_.propensity = propensity_;
  played_.clicks = log_.clicks;
  if (detail != nullptr) ranker_.describe(query, full_detail, *detail);
  played_.learned = ranker_.learn(context, {played_.round, query, shown_, log_.clicks});
}

void Trial::play_recorded(RoundContext& context) {
  const RecordedFeedback::Record record = users_.recorded->at(round_ - 1);
  played_.query = record.query;
  played_.shown = record.shown;
  played_.propensity = {};
  played_.clicks = record.clicks;
  const QueryDocs query = query_docs(record.query);
  // The order below the recorded ranks is unknown: file order is used, and regret is not reported.
  whole_list_.assign(record.shown.begin(), record.shown.end());
  for (std::int32_t doc = 0; doc < query.docs(); ++doc) {
    if (std::find(record.shown.begin(), record.shown.end(), doc) == record.shown.end()) {
      whole_list_.push_back(doc);
    }
  }
  played_.ndcg = online_.observe(data_.train.grades_of(record.query), whole_list_);
  played_.learned =
      ranker_.learn(context, {played_.round, query, record.shown, record.clicks, record.rewards});
}

void Trial::count_fairness(const RankedList& list) {
  const TrialFairness& fairness = *users_.fairness;
  if (fairness.exposure == ExposureKind::kPosition) {
    exposure_.observe(fairness.rule, played_.groups, shown_);
  } else {
    exposure_.observe_examined(fairness.rule, played_.groups, shown_, log_.examined);
  }
  played_.unfairness = fairness.rule.farthest(exposure_.unfairness());
  if (!list.fairness) return;
  fairness_.unrealisable += list.fairness->realisable ? 0 : 1;
  if (!list.fairness->violated) return;
  fairness_.violated_sum += *list.fairness->violated;
  ++fairness_.violated_rounds;
}

FairnessPoint Trial::fairness_point() const {
  FairnessPoint point;
  const ExposureRule& rule = users_.fairness->rule;
  point.unfairness = rule.farthest(exposure_.unfairness());
  if (exposure_.rounds() > 0) {
    point.fair_share =
        static_cast<double>(exposure_.fair_rounds()) / static_cast<double>(exposure_.rounds());
  }
  if (fairness_.violated_rounds > 0) {
    point.violations =
        static_cast<double>(fairness_.violated_sum) / static_cast<double>(fairness_.violated_rounds);
  }
  point.unrealisable = fairness_.unrealisable;
  for (std::size_t group = 0; group < rule.groups(); ++group)
    point.exposure.push_back(exposure_.of(static_cast<DocGroup>(group)));
  return point;
}

void Trial::count_examined(const QueryGrades& grades) {
  examined_grades_.clear();
  for (std::size_t rank = 0; rank < shown_.size(); ++rank) {
    if (log_.examined[rank] != 0) examined_grades_.push_back(grades.of_doc[shown_[rank]]);
  }
  examined_regret_ += misordered_pairs(examined_grades_, data_.max_grade);
}

void Trial::count_certainty(const ListCertainty& certainty) {
  if (certainty.shown_pairs > 0) {
    certainty_.share_sum +=
        static_cast<double>(certainty.certain_pairs) / static_cast<double>(certainty.shown_pairs);
    ++certainty_.share_rounds;
  }
  certainty_.blocks_sum += certainty.blocks;
  ++certainty_.rounds;
  for (std::size_t i = 0; i < certainty.block_size.size(); ++i) {
    if (certainty.block_size[i] == 0) continue;
    certainty_.block_size_sum[i] += certainty.block_size[i];
    ++certainty_.block_size_rounds[i];
  }
}

void Trial::count_contradicted(const RankedList& list, const QueryGrades& grades) {
  const auto count = [&](const auto& order, Tally& tally) {
    const auto first = grades.of_doc[order.first];
    const auto second = grades.of_doc[order.second];
    if (first == second) return;
    ++tally.total;
    tally.count += first < second ? 1 : 0;
  };
  for (const CertainOrder& order : list.certain_orders) count(order, certainty_.contradicted);
  for (const StatedOrder& order : list.stated_orders) {
    const auto above = std::upper_bound(kStatedFrom.begin() + 1, kStatedFrom.end(), order.probability);
    count(order, certainty_.stated[std::distance(kStatedFrom.begin(), above) - 1]);
  }
}

const CurvePoint& Trial::evaluate() {
  begin_evaluation();
  return finish_evaluation();
}

void Trial::begin_evaluation() {
  const auto measured = clock_.measure("eval");
  point_ = CurvePoint{};
  point_.round = round_;
  point_.pairs = pairs_;
  point_.cutoff = settings_.cutoff;
  point_.online_ndcg = online_.mean_ndcg();
  point_.discounted_ndcg = online_.discounted_ndcg();
  if (users_.recorded == nullptr) {
    point_.regret = online_.regret();
    point_.examined_regret = examined_regret_;
  }
  point_.random.online_ndcg = random_.mean_ndcg();
  point_.random.discounted_ndcg = random_.discounted_ndcg();
  if (users_.recorded == nullptr) point_.random.regret = random_.regret();
  const auto mean = [](double sum, std::int64_t count) {
    return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
  };
  point_.certain_share = mean(certainty_.share_sum, certainty_.share_rounds);
  point_.blocks = mean(static_cast<double>(certainty_.blocks_sum), certainty_.rounds);
  for (std::size_t i = 0; i < point_.block_size.size(); ++i) {
    point_.block_size[i] =
        mean(static_cast<double>(certainty_.block_size_sum[i]), certainty_.block_size_rounds[i]);
  }
  point_.false_certain = certainty_.contradicted;
  point_.decisions_differ = certainty_.turned_decisions;
  point_.stated = certainty_.stated;
  for (const RankerFigure& figure : ranker_.figures(execution_)) {
    if (figure.name == "drift") {
      point_.drift = figure.value;
    } else {
      point_.figures.push_back(figure);
    }
  }
  point_.width_ratio = width_ratio_of(width_ratios_);
  if (users_.fairness != nullptr) point_.fairness = fairness_point();
  interval_ = round_ % settings_.eval_every == 0
                  ? Interval{}
                  : Interval{evaluated_round_, certainty_, std::move(width_ratios_), fairness_};
  width_ratios_.clear();
  certainty_ = Certainty{};
  fairness_ = {0, 0, fairness_.unrealisable};
  evaluated_round_ = round_;
  // The cosine uses the model that gave the scores.
  scores_begun_ = !data_.offline && ranker_.begin_scores(data_.eval_set.all_rows());
  if (!scores_begun_) score_eval_set();
  evaluating_ = true;
  evaluation_clock_ = clock_;
}

const CurvePoint& Trial::finish_evaluation() {
  StageClock spent;
  {
    const auto measured = spent.measure("eval");
    if (scores_begun_) ranker_.finish_scores(eval_scores_);
    const MetricReport& report = evaluator_.evaluate(data_.eval_set, eval_scores_, execution_);
    point_.offline_ndcg = report.ndcg.front();
    point_.random.offline_ndcg = report.random_ndcg.front();
    std::size_t named = 0;
    for (const NamedMetric& metric : settings_.metrics) {
      if (metric.kind == MetricKind::kOwn) {
        const Dataset& part = data_.eval_set;
        const double value =
            own_metric_value(metric, {round_, part.offsets(), part.all_grades(), eval_scores_});
        point_.metrics.push_back({metric.name(), value, std::nan("")});
      } else {
        point_.metrics.push_back({metric.name(), report.named[named], report.random_named[named]});
        ++named;
      }
    }
    if (data_.offline)
      point_.cosine = cosine_to_offline(ranker_.model(), data_.eval_set, eval_scores_, *data_.offline);
  }
  clock_.add("eval", spent.total());
  evaluation_clock_.add("eval", spent.total());
  scores_begun_ = false;
  evaluating_ = false;
  evaluated_ = true;
  return point_;
}

std::string Trial::queries_csv() {
  if (!evaluated_) {  // resumed after its last round
    score_eval_set();
    evaluator_.evaluate(data_.eval_set, eval_scores_, execution_);
  }
  return query_ndcg_csv(data_.eval_set, evaluator_);
}

void Trial::fields_beside(StateFields& state) {
  std::vector<double> lists = last_lists_.values();
  state.any("trial.last_lists", lists);
  if (state.reads()) last_lists_.restore(lists);
  state.numbers("trial.examined_regret", examined_regret_);
  for (Certainty* certainty : {&certainty_, &interval_.certainty}) {
    state.sized("trial.block_size_sum", certainty->block_size_sum);
    state.sized("trial.block_size_rounds", certainty->block_size_rounds);
  }
  state.numbers("interval.evaluated_round", interval_.evaluated_round);
  certainty_fields(interval_.certainty, state);
  state.any("interval.width_ratios", interval_.width_ratios);
  fairness_fields(interval_.fairness, state);
}

// Trials without groups have the state that they had before there were any.
void Trial::fairness_fields(Fairness& fairness, StateFields& state) const {
  if (users_.fairness != nullptr)
    state.numbers("fairness.counts", fairness.violated_sum, fairness.violated_rounds,
                  fairness.unrealisable);
}

void Trial::certainty_fields(Certainty& certainty, StateFields& state) {
  state.numbers("certainty.share_sum", certainty.share_sum);
  state.numbers("certainty.share_rounds", certainty.share_rounds);
  state.numbers("certainty.blocks_sum", certainty.blocks_sum);
  state.numbers("certainty.rounds", certainty.rounds);
  // The sizes of the other ranks are in fields_beside().
  const auto sizes = [&state](std::string_view name, BlockSums& of_ranks) {
    std::array<std::int64_t, kFingerprintedBlocks.size()> sizes{};
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = of_ranks[kFingerprintedBlocks[i]];
    state.sized(name, sizes);
    if (!state.reads()) return;
    for (std::size_t i = 0; i < sizes.size(); ++i) of_ranks[kFingerprintedBlocks[i]] = sizes[i];
  };
  sizes("certainty.block_size_sum", certainty.block_size_sum);
  sizes("certainty.block_size_rounds", certainty.block_size_rounds);
  state.numbers("certainty.tallies", certainty.contradicted.count, certainty.contradicted.total,
                certainty.turned_decisions.count, certainty.turned_decisions.total);
  // Rankers that state no probabilities have the state that they had before there were any.
  if (state.reads()) certainty.stated = {};
  if (!(state.reads() ? state.reader().is_next(kStated) : is_stated(certainty.stated))) return;
  std::array<std::int64_t, 2 * kStatedFrom.size()> stated{};
  for (std::size_t at = 0; at < certainty.stated.size(); ++at) {
    stated[2 * at] = certainty.stated[at].count;
    stated[2 * at + 1] = certainty.stated[at].total;
  }
  state.sized(kStated, stated);
  if (!state.reads()) return;
  for (std::size_t at = 0; at < certainty.stated.size(); ++at)
    certainty.stated[at] = {stated[2 * at], stated[2 * at + 1]};
}

void Trial::fields(StateFields& state) {
  state.numbers("trial.round", round_);
  state.numbers("trial.evaluated_round", evaluated_round_);
  state.numbers("trial.pairs", pairs_);
  OnlineState online = online_.state();
  state.numbers("online.rounds", online.rounds);
  state.numbers("online.ndcg_sum", online.ndcg_sum);
  state.numbers("online.discounted_ndcg", online.discounted_ndcg);
  state.numbers("online.weight", online.weight);
  state.numbers("online.regret", online.regret);
  state.any("online.exposure", online.exposure);
  if (state.reads()) {
    online_.restore(std::move(online));
    random_ = RandomOnline(online_options(settings_, data_));
    for (std::int64_t round = 1; round <= round_; ++round)
      random_.observe(data_.train.grades_of(query_of(round)));
  }
  certainty_fields(certainty_, state);
  fairness_fields(fairness_, state);
  if (users_.fairness != nullptr) exposure_.fields(state, users_.fairness->rule);
  state.any("trial.width_ratios", width_ratios_);
  state.part(ranker_);
  if (!state.reads() || finished() || !ended_between_evaluations()) return;
  evaluated_round_ = interval_.evaluated_round;
  certainty_ = interval_.certainty;
  width_ratios_ = std::move(interval_.width_ratios);
  fairness_ = interval_.fairness;
  interval_ = {};
}

std::int64_t Trial::load_ranker(StateReader& state, OnlineRanker& ranker) {
  state.skip_to("trial.round");
  const auto rounds = state.get_one<std::int64_t>("trial.round");
  state.skip_to("trial.width_ratios");
  state.get<double>("trial.width_ratios");
  ranker.load(state);
  return rounds;
}

}  // namespace olrank
