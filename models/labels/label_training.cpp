#include "models/labels/label_training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "models/linear/linear_model.h"
#include "models/neural/ranker_network.h"

namespace olrank {
namespace {

/// A linear model starts at 0, where RankCosine has no gradient: there it starts in a random direction.
std::vector<float> first_linear_theta(ListLoss loss, std::int64_t features, PhiloxKey key) {
  std::vector<float> theta(features);
  if (loss != ListLoss::kRankCosine) return theta;
  std::vector<double> direction(theta.size());
  RngStream(key, 0).unit_vector(direction);
  std::copy(direction.begin(), direction.end(), theta.begin());
  return theta;
}

std::unique_ptr<ScoreModel> make_model(const LabelSettings& settings, std::int64_t features, PhiloxKey key,
                                       std::vector<float>& first_theta) {
  if (settings.network.network == NetworkForm::kLinear) {
    if (first_theta.empty()) first_theta = first_linear_theta(settings.loss, features, key);
    return std::make_unique<LinearModel>(features);
  }
  auto model = make_tangent_model(settings.network, features);
  if (first_theta.empty()) first_theta = model->first_parameters(key);
  return model;
}

}  // namespace

MetricOptions label_metrics(const LabelSettings& settings) {
  MetricOptions options;
  options.empty_queries = settings.empty_queries;
  auto& cutoffs = options.cutoffs;
  if (std::find(cutoffs.begin(), cutoffs.end(), settings.cutoff) == cutoffs.end())
    cutoffs.insert(std::upper_bound(cutoffs.begin(), cutoffs.end(), settings.cutoff), settings.cutoff);
  return options;
}

LabelTraining::LabelTraining(const LabelSettings& settings, const LabelData& data, const TrialKeys& keys,
                             std::vector<float> first_theta, int threads)
    : settings_(settings),
      vali_(data.vali),
      most_grade_(data.most_grade),
      context_(threads),
      labels_(data.train),
      evaluator_(label_metrics(settings)) {
  if (settings.patience > 0 && vali_ == nullptr) {
    throw InvalidArgument(
        "patience stops training by the validation part, and the data have none: set patience = 0, or give "
        "a validation part.");
  }
  model_ = make_model(settings, data.train.features(), keys.key(Purpose::kInitialisation), first_theta);
  const ListLossForm form = settings.loss_form(data.most_grade);
  objective_ = std::make_unique<LabelObjective>(*model_, labels_, form, threads);
  if (objective_->queries_with_order() == 0) {
    throw DataError("The training part", 0, 0,
                    "In every query all documents have the same grade, so there is no order to learn: give "
                    "data with at least two grades in a query.");
  }
  if (vali_ != nullptr)
    vali_objective_ = std::make_unique<LabelObjective>(*model_, LabelledQueries(*vali_), form, threads);
  solver_ = make_label_solver(settings, *objective_, keys.key(Purpose::kBatch), std::move(first_theta));
}

LabelTraining::Point LabelTraining::point(std::optional<double> loss, std::span<const float> theta) {
  Point point{epoch_, loss, std::nullopt, {}};
  if (vali_ == nullptr) return point;
  point.vali_loss = vali_objective_->mean_of_all(theta, {});
  scores_.resize(vali_->docs());
  model_->score(context_, theta, vali_->all_features(), scores_);
  point.vali = evaluator_.evaluate(*vali_, scores_, context_);
  const auto& cutoffs = evaluator_.options().cutoffs;
  const auto place = std::find(cutoffs.begin(), cutoffs.end(), settings_.cutoff) - cutoffs.begin();
  const double ndcg = point.vali.ndcg[static_cast<std::size_t>(place)];
  if (settings_.patience > 0 && (best_theta_.empty() || ndcg > best_ndcg_)) {
    best_ndcg_ = ndcg;
    best_epoch_ = epoch_;
    best_theta_.assign(theta.begin(), theta.end());
  }
  return point;
}

LabelTraining::Point LabelTraining::evaluate_first() {
  return point(std::nullopt, solver_->theta());
}

LabelTraining::Point LabelTraining::advance() {
  const double loss = solver_->advance();
  ++epoch_;
  return point(loss, solver_->theta());
}

bool LabelTraining::finished() const {
  if (epoch_ >= settings_.most_epochs() || solver_->converged()) return true;
  return settings_.patience > 0 && epoch_ - best_epoch_ >= settings_.patience;
}

std::span<const float> LabelTraining::theta() const {
  if (settings_.patience > 0 && !best_theta_.empty()) return best_theta_;
  return solver_->theta();
}

double LabelTraining::final_objective() {
  return objective_->mean_of_all(theta(), {}) + penalty(settings_, theta());
}

MetricReport LabelTraining::evaluate(const Dataset& data) {
  std::vector<float> scores(data.docs());
  model_->score(context_, theta(), data.all_features(), scores);
  return olrank::evaluate(data, scores, evaluator_.options(), context_);
}

double LabelTraining::mean_loss(const Dataset& data) {
  LabelObjective objective(*model_, LabelledQueries(data), settings_.loss_form(most_grade_),
                           context_.threads());
  return objective.mean_of_all(theta(), {});
}

void LabelTraining::save(StateWriter& state) const {
  state.put("training.epoch", epoch_);
  state.put("training.best_epoch", best_epoch_);
  state.put("training.best_ndcg", best_ndcg_);
  state.put("training.best_theta", best_theta_);
  solver_->save(state);
}

void LabelTraining::load(StateReader& state) {
  epoch_ = state.get_one<std::int64_t>("training.epoch");
  best_epoch_ = state.get_one<std::int64_t>("training.best_epoch");
  best_ndcg_ = state.get_one<double>("training.best_ndcg");
  best_theta_ = state.get<float>("training.best_theta");
  solver_->load(state);
}

}  // namespace olrank
