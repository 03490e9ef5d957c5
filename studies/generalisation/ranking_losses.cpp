// Experiment F, and the reading of real lists.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/data/data_folder.h"
#include "core/data/data_loader.h"
#include "core/data/normaliser.h"
#include "core/error.h"
#include "core/runtime/log_output.h"
#include "jobs/training/train_data.h"
#include "models/linear/linear_model.h"
#include "studies/generalisation/fits.h"
#include "studies/generalisation/generalisation_plan.h"
#include "studies/generalisation/list_source.h"
#include "studies/generalisation/study_losses.h"

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
    throw InvalidArgument(
        fmt::format("'{}' has no validation part, which experiment F needs.", lists.folder));
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
    throw InvalidArgument(
        fmt::format("'{}' has fewer than {} queries with {} documents or more, too few to compare lengths.",
                    folder, kFewestRealQueries, sizes.real_lengths.at(1)));
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
