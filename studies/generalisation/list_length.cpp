
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/online/click_model.h"
#include "core/ops/list_loss.h"
#include "core/random/rng_stream.h"
#include "core/statistics/t_tests.h"
#include "models/labels/label_objective.h"
#include "models/linear/linear_belief.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/study_losses.h"

// Experiment A: the gap between risk and training loss against list length and number of queries.

namespace olrank {
namespace {

constexpr std::int64_t kDocsPerHeldOutBlock = 20000;
/// Documents of a sample of a loss of several ranks.
constexpr std::int64_t kMostRankedDocs = 250'000;

/// The standard error of the mean of these values, which follows from their scatter.
double standard_error(const std::vector<double>& values) {
  const double centre = mean_of(values);
  double squares = 0.0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  const auto count = static_cast<double>(values.size());
  return count > 1.0 ? std::sqrt(squares / (count - 1.0) / count) : std::nan("");
}

/// The fits of one loss and n.
struct TwinFits {
  StudyLoss loss;
  std::int64_t queries = 0;
  double slopes = 0.0;  // G
  std::vector<float> a;
  std::vector<float> b;
  TwinLosses losses;
  std::vector<double> risks_of_a;  // means over blocks of held-out queries, of equal size
};

TwinFits fit_twins(const StudyLoss& loss, const Dataset& a, const Dataset& b, std::int64_t docs,
                   double row_norm) {
  TwinFits fits;
  fits.loss = loss;
  fits.queries = a.queries();
  fits.slopes = theorem_slopes(loss.form, docs);
  const double slopes_in_w = fits.slopes * row_norm;
  const double penalty = theorem_penalty(slopes_in_w, kStudyRadius, a.queries());
  fits.a = fit_regularised(loss.form, a, penalty, slopes_in_w);
  fits.b = fit_regularised(loss.form, b, penalty, slopes_in_w);
  fits.losses = twin_losses(loss.form, a, b, fits.a, fits.b);
  return fits;
}

CellRow row_of(const TwinFits& fits, std::int64_t docs) {
  const auto n = static_cast<double>(fits.queries);
  return {{{"loss", fits.loss.name}},
          {{"m", static_cast<double>(docs)},
           {"n", n},
           {"gap", fits.losses.gap()},
           {"slopes", fits.slopes},
           {"bound", fits.slopes * kStudyRadius * std::sqrt(2.0 / n)},
           {"regularised_bound", regularised_bound(fits.slopes, kStudyRadius, fits.queries)},
           {"uniform_bound", uniform_bound(fits.loss.form, docs, fits.slopes, kStudyRadius, fits.queries)},
           // G_2 ≤ G/√2, as the slopes of a query add up to 0.
           {"length_bound",
            3.0 * fits.slopes * std::sqrt(0.5) * kStudyRadius * std::sqrt(static_cast<double>(docs) / n)},
           {"radius_share", std::max(length_of(fits.a), length_of(fits.b)) / kStudyRadius}}};
}

}  // namespace

std::vector<CellRow> list_length_rows(const GeneralisationSizes& sizes, std::int64_t docs,
                                      const std::string& noise, std::int64_t seed) {
  const ListRecipe recipe{.docs = docs,
                          .features = sizes.features,
                          .noise = noise == "query" ? PreferenceNoise::kQuery : PreferenceNoise::kDocument};
  const std::int64_t most = *std::max_element(sizes.queries.begin(), sizes.queries.end());
  const Dataset a = ListSource(recipe, study_key(seed, StudyDraw::kSample)).queries(0, most);
  const Dataset b = ListSource(recipe, study_key(seed, StudyDraw::kTwin)).queries(0, most);
  std::vector<TwinFits> all;
  for (const StudyLoss& loss : list_length_losses(ListRecipe::kMostGrade)) {
    for (const std::int64_t n : sizes.queries) {
      const double work = static_cast<double>(n) * static_cast<double>(docs) * static_cast<double>(docs);
      if (has_pairs(loss.form.loss) && work > sizes.most_pair_work) continue;
      if (loss.form.smooth_at > 1 && n * docs > kMostRankedDocs) continue;
      all.push_back(fit_twins(loss, first_queries(a, n), first_queries(b, n), docs, recipe.row_norm));
    }
  }

  // Held-out queries come in blocks, so that their number costs no memory.
  const ListSource fresh(recipe, study_key(seed, StudyDraw::kHeldOut));
  const std::int64_t per_block = std::max<std::int64_t>(1, kDocsPerHeldOutBlock / docs);
  const std::int64_t blocks =
      std::max<std::int64_t>(2, std::min(sizes.held_out, sizes.held_out_docs / docs) / per_block);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const Dataset held_out = fresh.queries(block * per_block, per_block);
    const LinearModel model(recipe.features);
    for (TwinFits& fits : all) {
      LabelObjective risk(model, LabelledQueries(held_out), fits.loss.form, 1);
      fits.risks_of_a.push_back(risk.mean_of_all(fits.a, {}));
    }
  }
  std::vector<CellRow> rows;
  for (const TwinFits& fits : all) {
    CellRow row = row_of(fits, docs);
    row.labels["noise"] = noise;
    row.values["plain_gap"] = mean_of(fits.risks_of_a) - fits.losses.a_on_a;
    row.values["held_out_error"] = standard_error(fits.risks_of_a);
    row.values["held_out"] = static_cast<double>(blocks * per_block);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<CellRow> real_list_rows(const GeneralisationSizes& sizes, const RealLists& lists,
                                    std::int64_t seed) {
  const Dataset& all = *lists.queries;
  const PhiloxKey key = study_key(seed, StudyDraw::kRealLists);
  std::vector<std::int64_t> order(all.queries());
  std::iota(order.begin(), order.end(), 0);
  RngStream(key, 0).shuffle(std::span(order));
  const std::int64_t half = all.queries() / 2;
  std::vector<CellRow> rows;
  for (const std::int64_t docs : sizes.real_lengths) {
    if (docs > lists.longest) break;
    const auto part = [&](std::int64_t first) {
      std::vector<float> values;
      std::vector<std::uint8_t> grades;
      for (std::int64_t place = first; place < first + half; ++place) {
        const std::int64_t query = order[place];
        std::vector<std::int64_t> drawn(all.docs_of(query));
        std::iota(drawn.begin(), drawn.end(), 0);
        // The shorter samples of a query are parts of its longer ones.
        RngStream(key, static_cast<std::uint32_t>(query), 1).shuffle(std::span(drawn));
        for (std::int64_t rank = 0; rank < docs; ++rank) {
          const auto row = all.features_of(query).doc(drawn[rank]);
          values.insert(values.end(), row.begin(), row.end());
          grades.push_back(all.grades_of(query)[drawn[rank]]);
        }
      }
      return dataset_of_lists(std::move(values), std::move(grades), docs, all.features());
    };
    const Dataset a = part(0);
    const Dataset b = part(half);
    for (const StudyLoss& loss : list_length_losses(all.max_grade())) {
      CellRow row = row_of(fit_twins(loss, a, b, docs, 1.0), docs);
      row.labels["data"] = lists.name;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace olrank

// Experiments C and E: excess risk against the number of queries, on a finite population, whose risk and
// best model are known.

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
  const ListRecipe recipe{.features = sizes.features};
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
      rows.push_back({{{"loss", loss.name}, {"algorithm", algorithm}},
                      {{"n", queries},
                       {"excess", mean_loss(loss.form, population, theta) - least},
                       {"bound", slopes_in_w * kStudyRadius * std::sqrt(2.0 / queries)},
                       {"regularised_bound", regularised_bound(slopes_in_w, kStudyRadius, n)},
                       {"least", least}}});
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
  const ListRecipe recipe{.features = sizes.features,
                          .rows = RowKind::kGraded,
                          .noise = PreferenceNoise::kLabel,
                          .noise_share = noise};
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
      rows.push_back(
          {{{"algorithm", algorithm}},
           {{"noise", noise},
            {"n", queries},
            {"excess", mean_loss(loss.form, population, theta) - least},
            {"best_risk", best_risk},
            {"bound", 2.0 * std::sqrt(2.0 * curvature_in_w * radius * radius * best_risk / queries) +
                          8.0 * curvature_in_w * radius * radius / queries}}});
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
