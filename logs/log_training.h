#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clicks/click_fit.h"
#include "core/online/online_ranker.h"
#include "core/runtime/execution_context.h"
#include "jobs/training/train_data.h"
#include "models/labels/label_objective.h"
#include "models/labels/label_settings.h"

namespace olrank {

/// How clicks become what a model learns. kNaive: as they are. kIps: divided by how often users are
/// expected to have seen the document. kDr: that, and a regression for what they have not seen. kTwoTower
/// and kRegressionEm learn how users look together with the model.
enum class LogEstimator { kNaive, kIps, kDr, kTwoTower, kRegressionEm };

template <>
struct EnumNames<LogEstimator> {
  static constexpr std::array values =
      names_in_order<LogEstimator>("naive", "ips", "dr", "two-tower", "regression-em");
};

/// A training from the clicks of a log, in place of grades.
struct LogTrainingRequest {
  std::string log;  // as LogReader takes it
  LogEstimator estimator = LogEstimator::kIps;
  FittedModel click_model = FittedModel::kPosition;  // of ips and dr
  double clip = 10.0;                                // largest weight
  std::int64_t ranks = 100;                          // later ones are left out

  /// Throws InvalidArgument with the flag and the names that there are.
  void choose(const std::string& estimator_name, const std::string& click_model_name);
  /// Throws InvalidArgument for values that no request has, and for settings that do not go with clicks.
  void check(const LabelSettings& settings, bool on_gpu) const;
  bool goes_by_click_model() const {
    return estimator == LogEstimator::kIps || estimator == LogEstimator::kDr;
  }
  /// "ips, click model pbm, clip 10".
  std::string text() const;
};

/// The documents of a log that has their inputs, with the first ones of each, as the training part of a
/// fold. The grade of a document is 1 if it was ever clicked. The log of a service says how the model gets
/// its inputs of raw documents; another one has raw documents. Throws DataError with the line for a log
/// without inputs.
struct LogFold {
  TrainFold fold;
  std::string feature_names;  // as in model files; empty: unknown
};
LogFold fold_of_log(const std::string& log, ExecutionContext& context);

/// The lists of a log by the documents of a data set.
struct LogLists {
  ClickLists lists;
  std::vector<double> weights;      // of each shown document; empty without propensities
  std::vector<double> shown_lists;  // of each query
  std::int64_t without_propensity = 0;
  std::string fingerprint;
};

/// The weight of a shown document is the inverse of its propensity, but at most `clip`, over the mean of
/// that at its rank; documents of lists without propensities weigh 1. `named` says that documents with
/// numbers have them as names, not as places in the query. Throws DataError with the line, and
/// InvalidArgument without a click.
LogLists read_log_lists(const LogTrainingRequest& request, const Dataset& data, bool named);

/// The training's targets. A click model sees one half of the lists and weighs the other; the regression of
/// dr learns from one half of the queries and speaks for the other. Throws InvalidArgument, which says what
/// to do, where the log cannot tell how users look.
ClickTargets click_targets(const LogTrainingRequest& request, const LogLists& log, const Dataset& train,
                           const LabelSettings& settings, const TrialKeys& keys, int threads);

/// Adds to a model's metadata what it was learned from; `feature_names` are those in the log, if any.
void describe_log(const LogTrainingRequest& request, const std::string& feature_names,
                  ModelMetadata& metadata);

}  // namespace olrank
