#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/data/dataset.h"
#include "core/fair/doc_group.h"
#include "core/metrics/empty_queries.h"
#include "core/metrics/named_metric.h"

namespace olrank {

/// The protocol settings of a trial.
struct TrialSettings {
  std::int64_t rounds = 0;
  std::int64_t cutoff = 10;       // k
  std::int64_t eval_every = 100;  // E
  double discount = 0.9995;       // γ
  EmptyQueries empty_queries = EmptyQueries::kZero;
  std::vector<NamedMetric> metrics = {};  // offline, beyond NDCG@k
};

/// The linear model that was trained on all labels of a fold's training part.
struct OfflineModel {
  std::vector<float> theta;        // [features]
  std::vector<float> eval_scores;  // of all documents of the evaluated part
};

/// One fold's normalised data: queries are drawn from `train`, the model is evaluated on `eval_set`.
struct TrialData {
  Dataset train;
  Dataset eval_set;
  int max_grade = 0;                                   // of all parts
  std::optional<OfflineModel> offline = std::nullopt;  // if cosines are requested
  std::vector<DocGroup> groups = {};                   // [train docs], where exposure is measured
  std::vector<double> beta = {1.0};                    // β of these groups
};

}  // namespace olrank
