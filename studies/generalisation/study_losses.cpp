#include "studies/generalisation/study_losses.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/error.h"
#include "core/online/click_model.h"
#include "core/ops/list_loss.h"
#include "models/labels/label_solver.h"
#include "models/linear/linear_belief.h"

namespace olrank {

PhiloxKey study_key(std::int64_t seed, StudyDraw draw) {
  constexpr std::string_view kName = "generalisation";
  return make_key({.seed = static_cast<std::uint64_t>(seed),
                   .purpose = Purpose::kSynthetic,
                   .fold = 0,
                   .click_model = name_hash(kName.data(), kName.size()),
                   .member = static_cast<std::uint64_t>(draw)});
}

StudyLoss study_loss(const std::string& name, int most_grade) {
  constexpr std::string_view kMean = "-mean";
  constexpr std::string_view kTopTen = "-10";
  StudyLoss loss{name, {}};
  loss.form.most_grade = most_grade;
  loss.form.pair_mean = name.ends_with(kMean);
  std::string_view base = name;
  if (loss.form.pair_mean) base.remove_suffix(kMean.size());
  if (base.ends_with(kTopTen)) {
    loss.form.smooth_at = 10;
    base.remove_suffix(kTopTen.size());
  }
  for (const auto& [value, known] : EnumNames<ListLoss>::values) {
    if (known == base) {
      loss.form.loss = value;
      return loss;
    }
  }
  throw InvalidArgument("The study has no loss '" + name + "'.");
}

std::vector<StudyLoss> list_length_losses(int most_grade) {
  std::vector<StudyLoss> losses;
  for (const char* name : {"listnet", "smooth-dcg", "smooth-dcg-10", "ranksvm", "ranksvm-mean", "listmle"})
    losses.push_back(study_loss(name, most_grade));
  return losses;
}

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

double regularised_bound(double slopes_in_w, double radius, std::int64_t queries) {
  const auto n = static_cast<double>(queries);
  return 2.0 * slopes_in_w * radius * (8.0 / n + std::sqrt(2.0 / n));
}

double most_loss(const ListLossForm& form, std::int64_t docs, double slopes_in_w, double radius) {
  const auto m = static_cast<double>(docs);
  const auto pairs = form.pair_mean ? 1.0 : static_cast<double>(most_pairs(docs, form.most_grade));
  double at_zero = 0.0;
  switch (form.loss) {
    case ListLoss::kListNet:
      at_zero = std::log(m);
      break;
    case ListLoss::kSmoothDcg:
      at_zero = 2.0 * form.smoothing * theorem_slopes(form, docs);  // the DCG of documents of Y_max
      break;
    case ListLoss::kRankSvm:
      at_zero = pairs;
      break;
    case ListLoss::kRankNet:
    case ListLoss::kLambdaRank:
      at_zero = std::log(2.0) * pairs;
      break;
    case ListLoss::kListMle:
      at_zero = std::lgamma(m + 1.0);  // one of m! orders
      break;
    case ListLoss::kRankCosine:
      at_zero = 0.5;
      break;
  }
  return at_zero + slopes_in_w * radius;
}

double uniform_bound(const ListLossForm& form, std::int64_t docs, double slopes_in_w, double radius,
                     std::int64_t queries) {
  const auto n = static_cast<double>(queries);
  const double size = slopes_in_w * radius * std::sqrt(std::log2(3.0 * static_cast<double>(docs) * n));
  const double most = most_loss(form, docs, slopes_in_w, radius);
  return 2.0 * 10.0 * size / std::sqrt(n) * std::log(6.0 * most * std::sqrt(n) / (5.0 * size));
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
  settings.smooth_at = form.smooth_at;
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
