// Experiments C and E: excess risk against the number of queries, on a finite population, whose risk and
// best model are known.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/list_loss.h"
#include "core/random/rng_stream.h"
#include "studies/generalisation/fits.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/list_source.h"
#include "studies/generalisation/study_losses.h"

namespace olrank {
namespace {

/// Queries drawn from the population with replacement.
Dataset draw_sample(const Dataset& population, std::int64_t queries, std::int64_t seed) {
  RngStream stream(study_key(seed, StudyDraw::kChoice), static_cast<std::uint32_t>(queries));
  std::vector<std::int64_t> numbers(queries);
  for (std::int64_t& number : numbers)
    number = stream.index(static_cast<std::uint32_t>(population.queries()));
  return chosen_queries(population, numbers);
}

LabelSettings settings_for(const StudyLoss& loss, LabelOptimizer optimizer, double radius) {
  LabelSettings settings;
  settings.loss = loss.form.loss;
  settings.pair_mean = loss.form.pair_mean;
  settings.optimizer = optimizer;
  settings.radius = radius;
  return settings;
}

/// The entropy of ListNet's target distributions, which is the least loss that scores can reach.
double mean_target_entropy(const Dataset& data) {
  ExecutionContext context;
  ListLossForm form;
  const std::vector<float> scores(data.all_grades().begin(), data.all_grades().end());
  std::vector<double> slopes(scores.size());
  return list_losses(context, form, scores, data.all_grades(), data.offsets().subspan(1), slopes) /
         static_cast<double>(data.queries());
}

}  // namespace

std::vector<CellRow> excess_risk_rows(const GeneralisationSizes& sizes, const std::string& loss_name,
                                      std::int64_t seed) {
  const StudyLoss loss = study_loss(loss_name, ListRecipe::kMostGrade);
  ListRecipe recipe;
  recipe.features = sizes.features;
  const Dataset population =
      ListSource(recipe, study_key(0, StudyDraw::kPopulation)).queries(0, sizes.population);
  const LabelSettings over_ball = settings_for(loss, LabelOptimizer::kProximal, kStudyRadius);
  const auto best = fit_linear(over_ball, population, recipe.kMostGrade).theta;
  const double least = mean_loss(loss.form, population, best);
  const double slopes_in_w = theorem_slopes(loss.form, recipe.docs) * recipe.row_norm;

  std::vector<CellRow> rows;
  for (const std::int64_t n : sizes.online) {
    const Dataset sample = draw_sample(population, n, seed);
    const auto add = [&](const std::string& algorithm, std::span<const float> theta) {
      const auto queries = static_cast<double>(n);
      CellRow row;
      row.labels = {{"loss", loss.name}, {"algorithm", algorithm}};
      row.values = {{"n", queries},
                    {"excess", mean_loss(loss.form, population, theta) - least},
                    {"bound", slopes_in_w * kStudyRadius * std::sqrt(2.0 / queries)},
                    {"regularised_bound", regularised_bound(slopes_in_w, kStudyRadius, n)},
                    {"least", least}};
      rows.push_back(std::move(row));
    };
    const LinearFit online = fit_linear(settings_for(loss, LabelOptimizer::kOgdAverage, kStudyRadius),
                                        sample, recipe.kMostGrade, study_key(seed, StudyDraw::kOrder));
    add("ogd-average", online.theta);
    add("ogd-last", online.latest);
    LabelSettings regularised = over_ball;
    regularised.l2 = theorem_penalty(slopes_in_w, kStudyRadius, n);
    add("rerm", fit_linear(regularised, sample, recipe.kMostGrade).theta);
    add("erm", fit_linear(over_ball, sample, recipe.kMostGrade).theta);
  }
  return rows;
}

std::vector<CellRow> optimistic_rows(const GeneralisationSizes& sizes, double noise, std::int64_t seed) {
  const StudyLoss loss = study_loss("listnet", ListRecipe::kMostGrade);
  ListRecipe recipe;
  recipe.features = sizes.features;
  recipe.rows = RowKind::kGraded;
  recipe.noise = PreferenceNoise::kLabel;
  recipe.noise_share = noise;
  const Dataset population =
      ListSource(recipe, study_key(0, StudyDraw::kPopulation)).queries(0, sizes.population);
  const std::vector<double> direction = true_direction(recipe);
  std::vector<float> best(direction.begin(), direction.end());  // w° itself without noise
  const double radius = length_of(best);
  const LabelSettings over_ball = settings_for(loss, LabelOptimizer::kProximal, radius);
  if (noise > 0.0) best = fit_linear(over_ball, population, recipe.kMostGrade).theta;
  const double least = mean_loss(loss.form, population, best);
  // L* in the form of a divergence, which is what is small: the entropy is in every model's loss.
  const double best_risk = std::max(0.0, least - mean_target_entropy(population));
  const double curvature_in_w =
      recipe.row_norm * recipe.row_norm * curvature_bound(loss.form, recipe.docs, 0);

  std::vector<CellRow> rows;
  for (const std::int64_t n : sizes.online) {
    const Dataset sample = draw_sample(population, n, seed);
    const auto queries = static_cast<double>(n);
    const auto add = [&](const std::string& algorithm, std::span<const float> theta) {
      CellRow row;
      row.labels["algorithm"] = algorithm;
      row.values = {
          {"noise", noise},
          {"n", queries},
          {"excess", mean_loss(loss.form, population, theta) - least},
          {"best_risk", best_risk},
          {"bound", 2.0 * std::sqrt(2.0 * curvature_in_w * radius * radius * best_risk / queries) +
                        8.0 * curvature_in_w * radius * radius / queries}};
      rows.push_back(std::move(row));
    };
    LabelSettings online = settings_for(loss, LabelOptimizer::kOgdAverage, radius);
    online.learning_rate = smooth_step(curvature_in_w, radius, best_risk, n);
    const LinearFit fit = fit_linear(online, sample, recipe.kMostGrade, study_key(seed, StudyDraw::kOrder));
    add("ogd-average", fit.theta);
    add("ogd-last", fit.latest);
    add("erm", fit_linear(over_ball, sample, recipe.kMostGrade).theta);
  }
  return rows;
}

}  // namespace olrank
