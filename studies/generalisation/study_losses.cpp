#include "studies/generalisation/study_losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/online/click_model.h"
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
  const auto known = value_named<ListLoss>(base);
  if (!known) throw InvalidArgument("The study has no loss '" + name + "'.");
  loss.form.loss = *known;
  return loss;
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

TwinLosses twin_losses(const ListLossForm& form, const Dataset& a, const Dataset& b,
                       std::span<const float> of_a, std::span<const float> of_b) {
  return {mean_loss(form, a, of_a), mean_loss(form, b, of_a), mean_loss(form, a, of_b),
          mean_loss(form, b, of_b)};
}

double length_of(std::span<const float> theta) {
  double squares = 0.0;
  for (const float entry : theta) squares += double{entry} * double{entry};
  return std::sqrt(squares);
}

namespace {

/// Standard normal quantiles: half of the documents have grade 0, then 25, 15, 7 and 3 %.
constexpr std::array<double, 4> kGradeBounds = {0.0, 0.674489750196, 1.281551565545, 1.880793608151};

/// The grade of a standard normal relevance.
std::uint8_t grade_of_relevance(double relevance) {
  std::uint8_t grade = 0;
  for (const double bound : kGradeBounds) grade += relevance > bound ? 1 : 0;
  return grade;
}

/// A Dataset of generated queries owns these.
struct OwnedLists {
  std::vector<float> values;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets;
};

}  // namespace

Dataset dataset_with_offsets(std::vector<float> values, std::vector<std::uint8_t> grades,
                             std::vector<std::int64_t> offsets, std::int64_t features) {
  auto owned =
      std::make_shared<OwnedLists>(OwnedLists{std::move(values), std::move(grades), std::move(offsets)});
  Dataset::Contents contents;
  contents.values = owned->values;
  contents.grades = owned->grades;
  contents.offsets = owned->offsets;
  contents.features = features;
  contents.qids.resize(owned->offsets.size() - 1);
  contents.memory = std::move(owned);
  return Dataset(std::move(contents));
}

Dataset dataset_of_lists(std::vector<float> values, std::vector<std::uint8_t> grades, std::int64_t docs,
                         std::int64_t features) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t offset = 0; offset <= std::ssize(grades); offset += docs) offsets.push_back(offset);
  return dataset_with_offsets(std::move(values), std::move(grades), std::move(offsets), features);
}

Dataset first_queries(const Dataset& data, std::int64_t count) {
  Dataset::Contents contents = data.contents();
  const auto queries = static_cast<std::size_t>(count);
  const auto docs = static_cast<std::size_t>(data.offset(count));
  contents.values = contents.values.first(docs * static_cast<std::size_t>(data.features()));
  contents.grades = contents.grades.first(docs);
  contents.offsets = contents.offsets.first(queries + 1);
  contents.qids.resize(queries);
  return Dataset(std::move(contents));
}

Dataset chosen_queries(const Dataset& data, const std::vector<std::int64_t>& numbers) {
  std::vector<float> values;
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets = {0};
  for (const std::int64_t number : numbers) {
    const FeatureMatrix docs = data.features_of(number);
    const auto of_query = data.grades_of(number);
    values.insert(values.end(), docs.values, docs.values + docs.docs * docs.features);
    grades.insert(grades.end(), of_query.begin(), of_query.end());
    offsets.push_back(std::ssize(grades));
  }
  return dataset_with_offsets(std::move(values), std::move(grades), std::move(offsets), data.features());
}

std::vector<double> true_direction(const ListRecipe& recipe) {
  std::vector<double> direction(recipe.features, 0.0);
  switch (recipe.rows) {
    case RowKind::kSphere:
      std::fill(direction.begin(), direction.end(), 1.0 / std::sqrt(static_cast<double>(recipe.features)));
      break;
    case RowKind::kSigns:
      std::fill_n(direction.begin(), std::min(recipe.relevant, recipe.features), 1.0);
      break;
    case RowKind::kGraded:
      direction.front() = 1.0 / (kGradeStep * recipe.row_norm);
      break;
  }
  return direction;
}

Dataset ListSource::queries(std::int64_t first, std::int64_t count) const {
  std::vector<float> values(count * recipe_.docs * recipe_.features);
  std::vector<std::uint8_t> grades(count * recipe_.docs);
  for (std::int64_t query = 0; query < count; ++query) {
    make_query(first + query, values.data() + query * recipe_.docs * recipe_.features,
               grades.data() + query * recipe_.docs);
  }
  return dataset_of_lists(std::move(values), std::move(grades), recipe_.docs, recipe_.features);
}

void ListSource::make_query(std::int64_t query, float* values, std::uint8_t* grades) const {
  std::vector<double> direction;  // of relevance, for this query
  if (recipe_.rows != RowKind::kGraded) {
    direction = true_direction(recipe_);
    const double own = recipe_.noise_share;
    for (double& entry : direction) entry *= std::sqrt(1.0 - own);
    if (recipe_.noise == PreferenceNoise::kQuery) {
      std::vector<double> taste(recipe_.features);
      RngStream(key_, static_cast<std::uint32_t>(query), 0, 1).unit_vector(taste);
      for (std::size_t k = 0; k < taste.size(); ++k) direction[k] += std::sqrt(own) * taste[k];
    }
  }
  for (std::int64_t doc = 0; doc < recipe_.docs; ++doc)
    make_row(query, doc, direction, values + doc * recipe_.features, grades[doc]);
}

void ListSource::make_row(std::int64_t query, std::int64_t doc, const std::vector<double>& direction,
                          float* row, std::uint8_t& grade) const {
  RngStream stream(key_, static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(doc));
  const std::int64_t features = recipe_.features;
  if (recipe_.rows == RowKind::kSigns) {
    double relevance = 0.0;
    std::uint32_t bits = 0;
    for (std::int64_t k = 0; k < features; ++k) {
      if (k % 32 == 0) bits = stream.next_bits();
      row[k] = (bits >> (k % 32) & 1U) != 0 ? 1.0F : -1.0F;
      relevance += direction[k] * double{row[k]};
    }
    relevance /= std::sqrt(static_cast<double>(std::min(recipe_.relevant, features)));
    grade = grade_of_relevance(relevance + std::sqrt(recipe_.noise_share) * stream.normal());
    return;
  }
  std::array<double, 512> small;
  std::vector<double> large(features > std::ssize(small) ? features : 0);
  double* const x = large.empty() ? small.data() : large.data();
  double squares = 0.0;
  std::int64_t first = 0;
  double length = recipe_.row_norm;
  if (recipe_.rows == RowKind::kGraded) {
    const std::uint8_t shown = grade_of_relevance(stream.normal());
    const double share = kGradeStep * (static_cast<double>(shown) - 2.0);
    row[0] = static_cast<float>(recipe_.row_norm * share);
    length *= std::sqrt(1.0 - share * share);
    first = 1;
    const bool replaced = stream.uniform() < recipe_.noise_share;
    const std::uint8_t other = grade_of_relevance(stream.normal());
    grade = replaced ? other : shown;
  }
  for (std::int64_t k = first; k < features; ++k) {
    x[k] = stream.normal();
    squares += x[k] * x[k];
  }
  const double scale = length / std::sqrt(squares);
  double relevance = 0.0;
  for (std::int64_t k = first; k < features; ++k) {
    row[k] = static_cast<float>(x[k] * scale);
    if (!direction.empty()) relevance += direction[k] * x[k] * scale;
  }
  if (recipe_.rows == RowKind::kGraded) return;
  relevance *= std::sqrt(static_cast<double>(features)) / recipe_.row_norm;
  if (recipe_.noise == PreferenceNoise::kDocument)
    relevance += std::sqrt(recipe_.noise_share) * stream.normal();
  grade = grade_of_relevance(relevance);
}

}  // namespace olrank
