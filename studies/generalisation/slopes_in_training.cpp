// Experiment B: how long the slopes of a query's loss are along training.
#include <algorithm>
#include <cmath>

#include "core/online/labelled_queries.h"
#include "models/labels/label_solver.h"
#include "models/linear/linear_model.h"
#include "studies/generalisation/fits.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/list_source.h"
#include "studies/generalisation/study_losses.h"

namespace olrank {
namespace {

constexpr std::int64_t kPassesOfSlopes = 30;

/// ‖∇_s φ‖₁ and ‖∇_s φ‖₂ over all queries of all iterates.
class SlopeLengths {
 public:
  void add(const ListLossForm& form, const Dataset& data, const LinearModel& model,
           std::span<const float> theta) {
    std::vector<float> scores(data.docs());
    model.score(context_, theta, data.all_features(), scores);
    std::vector<double> precise(scores.begin(), scores.end());
    std::vector<double> slopes(scores.size());
    for (std::int64_t query = 0; query < data.queries(); ++query) {
      const std::span<double> of_query = std::span(slopes).subspan(data.offset(query), data.docs_of(query));
      list_loss(form, std::span<const double>(precise).subspan(data.offset(query), data.docs_of(query)),
                data.grades_of(query), context_.scratch(), of_query);
      double sum = 0.0;
      double squares = 0.0;
      for (const double slope : of_query) {
        sum += std::abs(slope);
        squares += slope * slope;
      }
      most_1 = std::max(most_1, sum);
      most_2 = std::max(most_2, std::sqrt(squares));
      sum_1_ += sum;
      sum_2_ += std::sqrt(squares);
      ++count_;
    }
  }
  double mean_1() const { return sum_1_ / static_cast<double>(count_); }
  double mean_2() const { return sum_2_ / static_cast<double>(count_); }

  double most_1 = 0.0;
  double most_2 = 0.0;

 private:
  ExecutionContext context_;
  double sum_1_ = 0.0;
  double sum_2_ = 0.0;
  std::int64_t count_ = 0;
};

}  // namespace

std::vector<CellRow> slope_rows(const GeneralisationSizes& sizes, std::int64_t docs, std::int64_t seed) {
  ListRecipe recipe;
  recipe.docs = docs;
  recipe.features = sizes.features;
  const Dataset data =
      ListSource(recipe, study_key(seed, StudyDraw::kSample)).queries(0, sizes.slope_queries);
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
    lengths.add(loss.form, data, model, solver->theta());
    for (std::int64_t pass = 0; pass < kPassesOfSlopes && !solver->converged(); ++pass) {
      solver->advance();
      lengths.add(loss.form, data, model, solver->theta());
    }
    CellRow row;
    row.labels["loss"] = loss.name;
    row.values = {{"m", static_cast<double>(docs)}, {"sup_l1", lengths.most_1},
                  {"mean_l1", lengths.mean_1()},    {"sup_l2", lengths.most_2},
                  {"mean_l2", lengths.mean_2()},    {"slopes", theorem_slopes(loss.form, docs)}};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace olrank
