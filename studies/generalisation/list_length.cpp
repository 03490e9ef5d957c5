// Experiment A: the gap between risk and training loss against list length and number of queries.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/online/labelled_queries.h"
#include "core/random/rng_stream.h"
#include "models/labels/label_objective.h"
#include "models/linear/linear_model.h"
#include "studies/generalisation/fits.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/list_source.h"
#include "studies/generalisation/study_losses.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocsPerHeldOutBlock = 20000;
/// Documents of a sample of a loss of several ranks.
constexpr std::int64_t kMostRankedDocs = 250'000;

/// A mean over the held-out queries, by blocks of equal size.
class HeldOutMean {
 public:
  void add(double mean_of_block) { blocks_.push_back(mean_of_block); }
  double mean() const {
    double sum = 0.0;
    for (const double block : blocks_) sum += block;
    return sum / static_cast<double>(blocks_.size());
  }
  /// From the scatter of the blocks.
  double standard_error() const {
    const double centre = mean();
    double squares = 0.0;
    for (const double block : blocks_) squares += (block - centre) * (block - centre);
    const auto count = static_cast<double>(blocks_.size());
    return count > 1.0 ? std::sqrt(squares / (count - 1.0) / count) : std::nan("");
  }

 private:
  std::vector<double> blocks_;
};

/// The fits of one loss and n.
struct TwinFits {
  StudyLoss loss;
  std::int64_t queries = 0;
  double slopes = 0.0;  // G
  std::vector<float> a;
  std::vector<float> b;
  TwinLosses losses;
  HeldOutMean risk_of_a;
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
  fits.losses = {mean_loss(loss.form, a, fits.a), mean_loss(loss.form, b, fits.a),
                 mean_loss(loss.form, a, fits.b), mean_loss(loss.form, b, fits.b)};
  return fits;
}

CellRow row_of(const TwinFits& fits, std::int64_t docs) {
  const auto n = static_cast<double>(fits.queries);
  CellRow row;
  row.labels["loss"] = fits.loss.name;
  row.values = {
      {"m", static_cast<double>(docs)},
      {"n", n},
      {"gap", fits.losses.gap()},
      {"slopes", fits.slopes},
      {"bound", fits.slopes * kStudyRadius * std::sqrt(2.0 / n)},
      {"regularised_bound", regularised_bound(fits.slopes, kStudyRadius, fits.queries)},
      {"uniform_bound", uniform_bound(fits.loss.form, docs, fits.slopes, kStudyRadius, fits.queries)},
      // G_2 ≤ G/√2, as the slopes of a query add up to 0.
      {"length_bound",
       3.0 * fits.slopes * std::sqrt(0.5) * kStudyRadius * std::sqrt(static_cast<double>(docs) / n)},
      {"radius_share", std::max(length_of(fits.a), length_of(fits.b)) / kStudyRadius}};
  return row;
}

}  // namespace

std::vector<CellRow> list_length_rows(const GeneralisationSizes& sizes, std::int64_t docs,
                                      const std::string& noise, std::int64_t seed) {
  ListRecipe recipe;
  recipe.docs = docs;
  recipe.features = sizes.features;
  recipe.noise = noise == "query" ? PreferenceNoise::kQuery : PreferenceNoise::kDocument;
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
      fits.risk_of_a.add(risk.mean_of_all(fits.a, {}));
    }
  }
  std::vector<CellRow> rows;
  for (const TwinFits& fits : all) {
    CellRow row = row_of(fits, docs);
    row.labels["noise"] = noise;
    row.values["plain_gap"] = fits.risk_of_a.mean() - fits.losses.a_on_a;
    row.values["held_out_error"] = fits.risk_of_a.standard_error();
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
  for (std::size_t place = 0; place < order.size(); ++place)
    order[place] = static_cast<std::int64_t>(place);
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
        for (std::size_t doc = 0; doc < drawn.size(); ++doc) drawn[doc] = static_cast<std::int64_t>(doc);
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
