#include "studies/generalisation/fits.h"

#include <algorithm>
#include <cmath>

#include "core/online/labelled_queries.h"
#include "core/ops/list_loss.h"
#include "models/labels/label_solver.h"
#include "models/linear/linear_model.h"

namespace olrank {

std::int64_t most_pairs(std::int64_t docs, int most_grade) {
  const std::int64_t grades = most_grade + 1;
  const std::int64_t each = docs / grades;
  const std::int64_t larger = docs % grades;  // grades with one document more
  const std::int64_t equal = larger * (each + 1) * each / 2 + (grades - larger) * each * (each - 1) / 2;
  return docs * (docs - 1) / 2 - equal;
}

double theorem_slopes(const ListLossForm& form, std::int64_t docs) {
  return slope_bound(form, docs, most_pairs(docs, form.most_grade));
}

double theorem_penalty(double slopes_in_w, double radius, std::int64_t queries) {
  const auto n = static_cast<double>(queries);
  return std::sqrt(4.0 * slopes_in_w * slopes_in_w / n) /
         std::sqrt(0.5 * radius * radius + 4.0 * radius * radius / n);
}

double smooth_step(double curvature_in_w, double radius, double best_risk, std::int64_t queries) {
  const double hw = curvature_in_w * radius;
  return radius / (4.0 * hw + 2.0 * std::sqrt(4.0 * hw * hw + 2.0 * curvature_in_w * best_risk *
                                                                  static_cast<double>(queries)));
}

LinearFit fit_linear(LabelSettings settings, const Dataset& data, int most_grade, PhiloxKey key) {
  settings.network.network = NetworkForm::kLinear;
  const LinearModel model(data.features());
  LabelObjective objective(model, LabelledQueries(data), settings.loss_form(most_grade), 1);
  const auto solver =
      make_label_solver(settings, objective, key, std::vector<float>(data.features(), 0.0F));
  for (std::int64_t pass = 0; pass < settings.most_epochs() && !solver->converged(); ++pass)
    solver->advance();
  return {{solver->theta().begin(), solver->theta().end()},
          {solver->latest().begin(), solver->latest().end()}};
}

std::vector<float> fit_regularised(const ListLossForm& form, const Dataset& data, double penalty,
                                   double slopes_in_w) {
  LabelSettings settings;
  settings.loss = form.loss;
  settings.smoothing = form.smoothing;
  settings.pair_mean = form.pair_mean;
  settings.optimizer = LabelOptimizer::kLbfgs;
  settings.l2 = penalty;
  settings.epochs = 60;
  settings.tolerance = 1e-4 * slopes_in_w;
  return fit_linear(settings, data, form.most_grade).theta;
}

double mean_loss(const ListLossForm& form, const Dataset& data, std::span<const float> theta) {
  const LinearModel model(data.features());
  return LabelObjective(model, LabelledQueries(data), form, 1).mean_of_all(theta, {});
}

double length_of(std::span<const float> theta) {
  double squares = 0.0;
  for (const float entry : theta) squares += double{entry} * double{entry};
  return std::sqrt(squares);
}

}  // namespace olrank
