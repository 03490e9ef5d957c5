#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/data/data_loader.h"
#include "core/data/normaliser.h"
#include "core/online/click_model.h"
#include "core/runtime/log.h"
#include "core/statistics/t_tests.h"
#include "core/throw_error.h"
#include "jobs/training/train_data.h"
#include "models/labels/label_solver.h"
#include "models/linear/linear_belief.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/study_losses.h"

// Experiment F, and the reading of real lists.

namespace olrank {
namespace {

/// With fewer queries than this, half of them is no sample to speak of.
constexpr std::int64_t kFewestRealQueries = 40;
constexpr double kPenalties[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0};

double ndcg_at_10(const Dataset& data, std::span<const float> theta, ExecutionContext& context) {
  LabelSettings settings;
  const MetricOptions options = label_metrics(settings);
  Evaluator evaluator(options);
  std::vector<float> scores(data.docs());
  LinearModel(data.features()).score(context, theta, data.all_features(), scores);
  const auto place =
      std::find(options.cutoffs.begin(), options.cutoffs.end(), settings.cutoff) - options.cutoffs.begin();
  return evaluator.evaluate(data, scores, context).ndcg[static_cast<std::size_t>(place)];
}

}  // namespace

std::vector<CellRow> ranking_rows(const RealLists& lists, const std::string& name, std::int64_t fold) {
  TrainConfiguration configuration;
  configuration.data.source = lists.folder;
  ExecutionContext context;
  const MutedLog muted;  // what there is to say of the data was said when the study was planned
  const TrainFold data = load_train_fold(configuration, fold, context);
  if (!data.vali)
    throw_error<InvalidArgument>("'{}' has no validation part, which experiment F needs.", lists.folder);
  const StudyLoss loss = study_loss(name, data.most_grade);
  double best = -1.0;
  CellRow row;
  for (const double penalty : kPenalties) {
    const auto theta = fit_regularised(loss.form, data.train, penalty, 1.0);
    const double vali = ndcg_at_10(*data.vali, theta, context);
    if (!(vali > best)) continue;
    best = vali;
    row.values = {{"fold", static_cast<double>(fold)},
                  {"penalty", penalty},
                  {"vali_ndcg", vali},
                  {"ndcg", ndcg_at_10(data.test, theta, context)}};
  }
  row.labels = {{"data", lists.name}, {"loss", name}};
  return {row};
}

RealLists load_real_lists(const std::string& folder, const GeneralisationSizes& sizes) {
  RealLists lists;
  lists.folder = folder;
  const std::filesystem::path path(folder);
  lists.name = (path.has_filename() ? path.filename() : path.parent_path().filename()).string();
  DataSettings settings;
  settings.source = folder;
  ExecutionContext context;
  const DataParts raw = load_parts(settings, 1, context);
  lists.folds = count_folds(folder);
  lists.fingerprint = fmt::format("{} {} {}", raw.train.fingerprint().hex(), raw.test.fingerprint().hex(),
                                  raw.vali ? raw.vali->fingerprint().hex() : "none");
  const FittedNormaliser normaliser = fit_normaliser(settings.normalise, raw.train, false, context);
  std::vector<Dataset> parts = {normaliser.apply(raw.train, context), normaliser.apply(raw.test, context)};
  if (raw.vali) parts.push_back(normaliser.apply(*raw.vali, context));
  const auto long_enough = [&](std::int64_t docs) {
    std::int64_t count = 0;
    for (const Dataset& part : parts) {
      for (std::int64_t query = 0; query < part.queries(); ++query)
        count += part.docs_of(query) >= docs ? 1 : 0;
    }
    return count;
  };
  lists.all_queries = long_enough(0);
  for (const std::int64_t docs : sizes.real_lengths) {
    if (long_enough(docs) >= kFewestRealQueries) lists.longest = docs;
  }
  if (lists.longest <= sizes.real_lengths.front()) {
    throw_error<InvalidArgument>(
        "'{}' has fewer than {} queries with {} documents or more, too few to compare lengths.", folder,
        kFewestRealQueries, sizes.real_lengths.at(1));
  }
  // The longest row becomes 1: R_X is the same for all data.
  double longest_sq = 0.0;
  std::vector<float> values;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets = {0};
  for (const Dataset& part : parts) {
    for (std::int64_t query = 0; query < part.queries(); ++query) {
      if (part.docs_of(query) < lists.longest) continue;
      const FeatureMatrix docs = part.features_of(query);
      for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
        double squares = 0.0;
        for (const float value : docs.doc(doc)) squares += double{value} * double{value};
        longest_sq = std::max(longest_sq, squares);
      }
      values.insert(values.end(), docs.values, docs.values + docs.docs * docs.features);
      const auto of_query = part.grades_of(query);
      grades.insert(grades.end(), of_query.begin(), of_query.end());
      offsets.push_back(std::ssize(grades));
    }
  }
  for (float& value : values) value = static_cast<float>(value / std::sqrt(longest_sq));
  lists.queries = std::make_shared<const Dataset>(
      dataset_with_offsets(std::move(values), std::move(grades), std::move(offsets), raw.train.features()));
  return lists;
}

}  // namespace olrank

// Experiment D: balls of ‖w‖₁ and of ‖w‖₂ against the number of features, most of which are irrelevant.

namespace olrank {

std::vector<CellRow> sparse_rows(const GeneralisationSizes& sizes, std::int64_t features,
                                 std::int64_t seed) {
  const StudyLoss loss = study_loss("listnet", ListRecipe::kMostGrade);
  const ListRecipe recipe{
      .features = features, .rows = RowKind::kSigns, .noise = PreferenceNoise::kDocument};
  const std::int64_t n = sizes.sparse_queries;
  const Dataset a = ListSource(recipe, study_key(seed, StudyDraw::kSample)).queries(0, n);
  const Dataset b = ListSource(recipe, study_key(seed, StudyDraw::kTwin)).queries(0, n);
  // Both balls just hold w° when its relevance has unit variance: k entries of 1/√k.
  const double radius_1 = std::sqrt(static_cast<double>(recipe.relevant));
  const double radius_2 = 1.0;
  const double slopes = theorem_slopes(loss.form, recipe.docs);
  const auto d = static_cast<double>(features);
  std::vector<CellRow> rows;
  for (const BallNorm norm : {BallNorm::kL1, BallNorm::kL2}) {
    LabelSettings settings;
    settings.loss = loss.form.loss;
    settings.optimizer = LabelOptimizer::kProximal;
    settings.radius_norm = norm;
    settings.radius = norm == BallNorm::kL1 ? radius_1 : radius_2;
    settings.epochs = 150;
    settings.tolerance = 1e-5;
    const auto of_a = fit_linear(settings, a, recipe.kMostGrade).theta;
    const auto of_b = fit_linear(settings, b, recipe.kMostGrade).theta;
    const TwinLosses losses = twin_losses(loss.form, a, b, of_a, of_b);
    rows.push_back({{{"norm", norm == BallNorm::kL1 ? "l1" : "l2"}},
                    {{"d", d},
                     {"n", static_cast<double>(n)},
                     {"gap", losses.gap()},
                     {"risk", 0.5 * (losses.a_on_b + losses.b_on_a)},
                     // Without constants, which the paper's Õ hides.
                     {"shape", slopes / std::sqrt(static_cast<double>(n)) *
                                   (norm == BallNorm::kL1 ? radius_1 * std::sqrt(std::log(d))
                                                          : radius_2 * std::sqrt(d))}}});
  }
  return rows;
}

}  // namespace olrank

// Experiment B: how long the slopes of a query's loss are along training.

namespace olrank {
namespace {

constexpr std::int64_t kPassesOfSlopes = 30;

/// ‖∇_s φ‖₁ and ‖∇_s φ‖₂ of all queries of all iterates.
struct SlopeLengths {
  std::vector<double> l1;
  std::vector<double> l2;
};

void add_slopes(ExecutionContext& context, const ListLossForm& form, const Dataset& data,
                const LinearModel& model, std::span<const float> theta, SlopeLengths& lengths) {
  std::vector<float> scores(data.docs());
  model.score(context, theta, data.all_features(), scores);
  const std::vector<double> precise(scores.begin(), scores.end());
  std::vector<double> slopes(scores.size());
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const std::span<double> of_query = std::span(slopes).subspan(data.offset(query), data.docs_of(query));
    list_loss(form, std::span(precise).subspan(data.offset(query), data.docs_of(query)),
              data.grades_of(query), context.scratch(), of_query);
    double sum = 0.0;
    double squares = 0.0;
    for (const double slope : of_query) {
      sum += std::abs(slope);
      squares += slope * slope;
    }
    lengths.l1.push_back(sum);
    lengths.l2.push_back(std::sqrt(squares));
  }
}

}  // namespace

std::vector<CellRow> slope_rows(const GeneralisationSizes& sizes, std::int64_t docs, std::int64_t seed) {
  const ListRecipe recipe{.docs = docs, .features = sizes.features};
  const Dataset data =
      ListSource(recipe, study_key(seed, StudyDraw::kSample)).queries(0, sizes.slope_queries);
  ExecutionContext context;
  std::vector<CellRow> rows;
  for (const StudyLoss& loss : list_length_losses(ListRecipe::kMostGrade)) {
    const LinearModel model(data.features());
    LabelObjective objective(model, LabelledQueries(data), loss.form, 1);
    LabelSettings settings;
    settings.loss = loss.form.loss;
    settings.pair_mean = loss.form.pair_mean;
    settings.optimizer = LabelOptimizer::kLbfgs;
    settings.network.network = NetworkForm::kLinear;
    const auto solver =
        make_label_solver(settings, objective, {}, std::vector<float>(data.features(), 0.0F));
    SlopeLengths lengths;
    add_slopes(context, loss.form, data, model, solver->theta(), lengths);
    for (std::int64_t pass = 0; pass < kPassesOfSlopes && !solver->converged(); ++pass) {
      solver->advance();
      add_slopes(context, loss.form, data, model, solver->theta(), lengths);
    }
    rows.push_back({{{"loss", loss.name}},
                    {{"m", static_cast<double>(docs)},
                     {"sup_l1", std::ranges::max(lengths.l1)},
                     {"mean_l1", mean_of(lengths.l1)},
                     {"sup_l2", std::ranges::max(lengths.l2)},
                     {"mean_l2", mean_of(lengths.l2)},
                     {"slopes", theorem_slopes(loss.form, docs)}}});
  }
  return rows;
}

}  // namespace olrank
