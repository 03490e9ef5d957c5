#include "models/skeleton/certain_order_ranker.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"

namespace olrank {
namespace {

/// Makes lists as a CertainOrderRanker did when it was frozen.
class FrozenCertainOrderRanker : public FrozenRanker {
 public:
  FrozenCertainOrderRanker(const CertainListMaker& maker, std::shared_ptr<const Belief> belief,
                           MemberThetas thetas)
      : maker_(maker), belief_(std::move(belief)), thetas_(thetas.begin(), thetas.end()) {}

  void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const override {
    maker_.make(context, *belief_, thetas_, task, ranking);
  }
  ModelTensors model() const override { return belief_->model(thetas_); }

 private:
  CertainListMaker maker_;
  std::shared_ptr<const Belief> belief_;
  std::vector<std::vector<float>> thetas_;
};

/// Sets the certain orders of a query, by place in the order by score, and returns the rule that decided.
CertaintyRule find_certain_orders(ExecutionContext& context, const CertaintyPolicy& policy,
                                  const Belief& belief, const Evidence& evidence,
                                  std::span<const std::int32_t> by_score, OrderBits& orders) {
  const double log_det = policy.theory ? belief.log_det() : 0.0;
  const CertaintyRule rule = policy.rule(log_det, evidence.least_difference);
  if (belief.has_widths()) {
    certain_by_width(rule, evidence.scores, by_score, evidence.width_sq, orders);
  } else {
    certain_by_vote(evidence.members, rule.least_difference, evidence.member_scores, by_score, orders,
                    context.scratch());
  }
  return rule;
}

}  // namespace

CertainListMaker::CertainListMaker(const RankerSettings& settings, const TrialKeys& of)
    : explore(settings.explore), fair(settings.fair), policy(certainty_policy(settings)), keys(of) {}

CertainListMaker::Decided CertainListMaker::decide(ExecutionContext& context, const Belief& belief,
                                                   const Evidence& evidence,
                                                   std::span<const std::int32_t> by_score,
                                                   std::uint32_t round, const FairRound* groups,
                                                   CertainList& list) const {
  const CertaintyRule rule =
      find_certain_orders(context, policy, belief, evidence, by_score, list.orders());
  if (groups == nullptr || fair.fair != Fairness::kFairCo)
    return {list.make(by_score, round, groups), rule};
  // FairCo: certain orders of scores that proportional control has raised; widths and votes stay.
  const auto raise = [&](std::span<const float> scores) {
    std::vector<float> raised(scores.begin(), scores.end());
    for (std::size_t i = 0; i < raised.size(); ++i) {
      const auto group = groups->groups[i % by_score.size()];
      raised[i] = static_cast<float>(double{raised[i]} + fair_control(*groups, fair.fair_gain, group));
    }
    return raised;
  };
  std::vector<float> scores = raise(evidence.scores);
  std::vector<float> member_scores = raise(evidence.member_scores);
  Evidence controlled = evidence;  // with the same widths
  controlled.scores = scores;
  controlled.member_scores = member_scores;
  std::vector<std::int32_t> controlled_by_score;
  OrderBits orders;
  order_by_score(context, scores, controlled_by_score);
  find_certain_orders(context, policy, belief, controlled, controlled_by_score, orders);
  return {list.make_controlled(by_score, controlled_by_score, orders, round), rule};
}

void CertainListMaker::make(ExecutionContext& context, const Belief& belief, MemberThetas thetas,
                            const RankingTask& task, Ranking& ranking) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  Evidence evidence = belief.take_evidence(scratch, std::ssize(thetas), task.docs.docs);
  belief.score(context, thetas, task.docs, evidence);
  ranking.scores.assign(evidence.scores.begin(), evidence.scores.end());
  order_by_score(context, evidence.scores, ranking.by_score);
  if (belief.has_widths()) belief.measure_widths(context, task.docs, evidence);
  CertainList list = CertainList::of(task, explore, fair, keys);
  const Decided made = decide(context, belief, evidence, ranking.by_score, task.round, task.fair, list);
  list.hand_over(made.list, ranking);
}

CertainOrderRanker::CertainOrderRanker(const RankerRequest& request, std::unique_ptr<Belief> belief,
                                       std::unique_ptr<ModelLearner> learner,
                                       std::unique_ptr<WidthShadow> shadow)
    : settings_(request.settings),
      maker_(settings_, request.keys),
      batch_key_(request.keys.key(Purpose::kBatch)),
      belief_(std::move(belief)),
      learner_(std::move(learner)),
      shadow_(std::move(shadow)),
      list_(settings_.explore, settings_.fair, request.keys, request.cutoff) {}

void CertainOrderRanker::score_query(ExecutionContext& context, const QueryDocs& query) {
  const MemberThetas thetas = learner_->thetas();
  evidence_frame_.reset();
  evidence_frame_.emplace(evidence_memory_);
  evidence_ = belief_->take_evidence(evidence_memory_, std::ssize(thetas), query.docs());
  belief_->score(context, thetas, query.features, evidence_);
  scored_query_ = query.query;
}

RankedList CertainOrderRanker::rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) {
  {
    const auto measured = context.clock.measure("score");
    score_query(context.execution, query);
    order_by_score(context.execution, evidence_.scores, by_score_);
  }
  if (belief_->has_widths()) {
    const auto measured = context.clock.measure("width");
    belief_->measure_and_repair_widths(context.execution, query.features, evidence_);
  }
  CertainListMaker::Decided made;
  {
    const auto measured = context.clock.measure("rank");
    made = maker_.decide(context.execution, *belief_, evidence_, by_score_, round, query.fair, list_);
  }
  if (shadow_) {
    const auto measured = context.clock.measure("shadow");
    shadow_->compare(context.execution, list_.shown(made.list), evidence_, made.rule, made.list);
  }
  return made.list;
}

LearnReport CertainOrderRanker::learn(RoundContext& context, const Feedback& feedback) {
  preference_pairs(settings_.feedback, feedback.shown, feedback.clicks,
                   RngStream(batch_key_, feedback.round), pairs_);
  loss_pairs(settings_.feedback, feedback, batch_key_, pairs_, loss_);
  if (loss_.pairs.empty()) pairs_.clear();  // nothing is known of what is not learned
  if (pairs_.empty() && !learner_->trains_without_pairs()) return {};
  const bool after = settings_.posterior.observe_at == ObserveAt::kAfter;
  if (!pairs_.empty()) {
    if (!after) observe(context, feedback);
    learner_->observe(feedback, loss_);
  }
  scored_query_ = -1;
  std::span<const double> steps;
  {
    const auto measured = context.clock.measure("train");
    steps = learner_->train(context.execution, feedback.round);
  }
  if (after && !pairs_.empty()) observe(context, feedback);
  return {pairs_, steps};
}

void CertainOrderRanker::observe(RoundContext& context, const Feedback& feedback) {
  const QueryDocs& query = feedback.query;
  {
    const auto measured = context.clock.measure("observe");
    if (belief_->observes_evidence() && scored_query_ != query.query) score_query(context.execution, query);
    // Each pair once, however much it counts: a weight says what a preference is worth, not how often it
    // was seen, and widths shrink with what was seen.
    belief_->observe(context.execution, query.features, evidence_, pairs_);
  }
  if (!shadow_) return;
  const auto measured = context.clock.measure("shadow");
  shadow_->observe(context.execution, feedback.shown, evidence_, pairs_);
}

void CertainOrderRanker::describe(const QueryDocs&, bool full, RoundDetail& detail) {
  detail.scores.assign(evidence_.scores.begin(), evidence_.scores.end());
  if (!full) return;
  const MemberThetas thetas = learner_->thetas();
  detail.theta.assign(thetas.begin(), thetas.end());
  detail.width_sq.assign(evidence_.width_sq.begin(), evidence_.width_sq.end());
  list_.write_matrix(by_score_, detail.certain);
}

void CertainOrderRanker::score(ExecutionContext& context, FeatureMatrix docs,
                               std::span<float> scores) const {
  belief_->mean_score(context, learner_->thetas(), docs, scores);
}

std::int64_t CertainOrderRanker::parameters() const {
  return std::ssize(learner_->thetas()) * std::ssize(learner_->thetas().front());
}

std::vector<RankerFigure> CertainOrderRanker::figures(ExecutionContext& context) const {
  std::vector<RankerFigure> figures = belief_->figures(context);
  if (maker_.policy.theory) {
    const double log_det = belief_->log_det();
    figures.push_back({"log_det", log_det});
    figures.push_back({"alpha", maker_.policy.theory->at(log_det)});
  }
  for (RankerFigure& figure : learner_->figures()) figures.push_back(std::move(figure));
  return figures;
}

std::shared_ptr<const FrozenRanker> CertainOrderRanker::freeze() const {
  return std::make_shared<FrozenCertainOrderRanker>(maker_, belief_->freeze(), learner_->thetas());
}

// The order is part of a result's fingerprint, which digests the archive.
void CertainOrderRanker::fields(StateFields& state) {
  state.part(*learner_);
  state.part(*belief_);
  learner_->figure_fields(state);
  if (shadow_) state.part(*shadow_);
  if (state.reads()) scored_query_ = -1;
}

void CertainOrderRanker::save_for_lists(StateWriter& state) const {
  for (const std::vector<float>& theta : learner_->thetas()) state.put("theta", theta);
  belief_->save(state);
}

void CertainOrderRanker::load_for_lists(StateReader& state) {
  const MemberThetas known = learner_->thetas();
  std::vector<std::vector<float>> thetas(known.begin(), known.end());
  for (std::vector<float>& theta : thetas) state.get_into("theta", std::span(theta));
  learner_->set_thetas(std::move(thetas));
  belief_->load(state);
  scored_query_ = -1;
}

CertainList::CertainList(const ExplorationSettings& settings, const FairSettings& fair,
                         const TrialKeys& keys, std::int64_t cutoff)
    : cutoff_(cutoff), list_(settings.list, settings.refine, keys.key(Purpose::kList)) {
  if (fair.fair == Fairness::kFairExp)
    fair_list_.emplace(fair.template_search, keys.key(Purpose::kTemplate));
}

CertainList CertainList::of(const RankingTask& task, ExplorationSettings settings, const FairSettings& fair,
                            const TrialKeys& keys) {
  if (!task.explore) settings.list = ListRule::kGreedy;
  return {settings, fair, keys, task.cutoff};
}

void CertainList::hand_over(const RankedList& made, Ranking& ranking) {
  ranking.list.assign(made.docs.begin(), made.docs.end());
  ranking.knows_orders = true;
  ranking.certainty = made.certainty;
  ranking.fairness = made.fairness;
  ranking.propensity.assign(made.propensity.begin(), made.propensity.end());
  std::swap(ranking.orders, orders_);
}

RankedList CertainList::make(std::span<const std::int32_t> by_score, std::uint32_t round,
                             const FairRound* fair) {
  list_.arrange(by_score, orders_, round);
  return finish(by_score, list_.shuffles_blocks(), round, fair);
}

RankedList CertainList::make_of_blocks(std::span<const std::int32_t> by_score,
                                       std::span<const std::int32_t> block_ends, std::uint32_t round,
                                       const FairRound* fair) {
  list_.arrange_blocks(by_score, block_ends, round);
  return finish(by_score, true, round, fair);
}

RankedList CertainList::make_of_list(std::span<const std::int32_t> by_score,
                                     std::span<const std::int32_t> list, std::span<const double> propensity,
                                     std::uint32_t round, const FairRound* fair) {
  if (fair_list_ && fair != nullptr) return make(by_score, round, fair);
  list_.arrange_as(by_score, orders_, list, propensity);
  return finish(by_score, false, round, fair);
}

RankedList CertainList::finish(std::span<const std::int32_t> by_score, bool uniform, std::uint32_t round,
                               const FairRound* fair) {
  if (fair == nullptr) return list_.finish(by_score, orders_, cutoff_);
  ListFairness fairness;
  if (fair_list_) {
    const GroupedBlocks blocks{by_score,     list_.block_ends(), &list_.followed(orders_),
                               fair->groups, list_.places(),     uniform};
    fairness.realisable = fair_list_->make(blocks, *fair, round, cutoff_, fair_places_).realisable;
    std::swap(list_.places(), fair_places_);
    list_.forget_propensity();  // of chance and exposure together
  }
  fairness.violated = count_violated(orders_, list_.places(), placed_);
  RankedList list = list_.finish(by_score, orders_, cutoff_);
  list.fairness = fairness;
  return list;
}

RankedList CertainList::make_controlled(std::span<const std::int32_t> by_score,
                                        std::span<const std::int32_t> controlled_by_score,
                                        const OrderBits& controlled_orders, std::uint32_t round) {
  RankedList list = list_.make(controlled_by_score, controlled_orders, round, cutoff_);
  list.propensity = {};
  return with_violated(list, by_score);
}

RankedList CertainList::make_controlled_blocks(std::span<const std::int32_t> by_score,
                                               std::span<const std::int32_t> controlled_by_score,
                                               std::span<const std::int32_t> controlled_ends,
                                               std::uint32_t round) {
  list_.arrange_blocks(controlled_by_score, controlled_ends, round);
  // The orders by block count what is certain between the shown documents.
  place_of_.resize(by_score.size());
  for (std::size_t place = 0; place < by_score.size(); ++place)
    place_of_[by_score[place]] = static_cast<std::int32_t>(place);
  for (std::int32_t& place : list_.places()) place = place_of_[controlled_by_score[place]];
  list_.forget_propensity();
  return with_violated(list_.finish(by_score, orders_, cutoff_), by_score);
}

RankedList CertainList::with_violated(RankedList list, std::span<const std::int32_t> by_score) {
  place_of_.resize(by_score.size());
  for (std::size_t place = 0; place < by_score.size(); ++place)
    place_of_[by_score[place]] = static_cast<std::int32_t>(place);
  fair_places_.clear();
  for (const std::int32_t doc : list.docs) fair_places_.push_back(place_of_[doc]);
  list.fairness = ListFairness{.violated = count_violated(orders_, fair_places_, placed_)};
  return list;
}

std::span<const std::int32_t> CertainList::shown(const RankedList& list) const {
  return list.docs.first(std::min(static_cast<std::size_t>(cutoff_), list.docs.size()));
}

void CertainList::write_matrix(std::span<const std::int32_t> by_score,
                               std::vector<std::uint8_t>& matrix) const {
  const std::size_t docs = by_score.size();
  matrix.assign(docs * docs, 0);
  for (std::size_t place = 0; place < docs; ++place) {
    const auto row = std::span(matrix).subspan(static_cast<std::size_t>(by_score[place]) * docs, docs);
    orders_.for_each_below(static_cast<std::int64_t>(place),
                           [&](std::int64_t below) { row[by_score[below]] = 1; });
  }
}

}  // namespace olrank
