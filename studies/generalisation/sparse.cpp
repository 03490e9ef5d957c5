// Experiment D: balls of ‖w‖₁ and of ‖w‖₂ against the number of features, most of which are irrelevant.
#include <cmath>

#include "studies/generalisation/fits.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/list_source.h"
#include "studies/generalisation/study_losses.h"

namespace olrank {

std::vector<CellRow> sparse_rows(const GeneralisationSizes& sizes, std::int64_t features,
                                 std::int64_t seed) {
  const StudyLoss loss = study_loss("listnet", ListRecipe::kMostGrade);
  ListRecipe recipe;
  recipe.features = features;
  recipe.rows = RowKind::kSigns;
  recipe.noise = PreferenceNoise::kDocument;
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
    const TwinLosses losses{mean_loss(loss.form, a, of_a), mean_loss(loss.form, b, of_a),
                            mean_loss(loss.form, a, of_b), mean_loss(loss.form, b, of_b)};
    CellRow row;
    row.labels["norm"] = norm == BallNorm::kL1 ? "l1" : "l2";
    row.values = {{"d", d},
                  {"n", static_cast<double>(n)},
                  {"gap", losses.gap()},
                  {"risk", 0.5 * (losses.a_on_b + losses.b_on_a)},
                  // Without constants, which the paper's Õ hides.
                  {"shape", slopes / std::sqrt(static_cast<double>(n)) *
                                (norm == BallNorm::kL1 ? radius_1 * std::sqrt(std::log(d))
                                                       : radius_2 * std::sqrt(d))}};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace olrank
