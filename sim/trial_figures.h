#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/fair/dataset_groups.h"
#include "core/fair/exposure.h"
#include "core/metrics/list_metrics.h"
#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "sim/trial_settings.h"

namespace olrank {

/// The cosine of two models' scores of a data set. Scores are centred within each query, because adding a
/// constant to a query's scores does not change the order. None when one of them is zero.
std::optional<double> centred_cosine(const Dataset& data, std::span<const float> a,
                                     std::span<const float> b);

/// The similarity of a model to the offline model: the cosine of the parameters for a linear model (the
/// members' mean for an ensemble), otherwise the cosine of the scores of the evaluated part.
std::optional<double> cosine_to_offline(const ModelTensors& model, const Dataset& eval_set,
                                        std::span<const float> eval_scores, const OfflineModel& offline);

/// The lists of a trial's latest rounds, against random orders of their documents. They do not depend on
/// the number of rounds to come, so that a trial can be extended.
class LastLists {
 public:
  static constexpr std::int64_t kRounds = 200;

  void observe(double ndcg, const RandomNdcg& random);

  double mean_ndcg() const { return sum_of(&List::ndcg) / static_cast<double>(lists_.size()); }
  double random_ndcg() const { return sum_of(&List::random_mean) / static_cast<double>(lists_.size()); }
  /// Whether kRounds lists are worse than random ones by more than three standard deviations of random
  /// lists, which a random ranker is in one trial out of 740.
  bool worse_than_random() const;

  /// Checkpoints keep these: three numbers a list, the oldest first.
  std::vector<double> values() const;
  void restore(std::span<const double> values);

 private:
  struct List {
    double ndcg = 0.0;
    double random_mean = 0.0;
    double random_variance = 0.0;
  };

  double sum_of(double List::*figure) const;

  std::deque<List> lists_;  // at most kRounds, the oldest first
};

/// A trial measures exposure by these.
struct TrialFairness {
  ExposureRule rule;
  ExposureKind exposure = ExposureKind::kPosition;
};

/// How likely each rank of a list is examined, as a share of the first rank.
struct Examination {
  std::vector<double> by_rank;  // P(1) = 1, P(2), …
  std::int64_t lists = 0;       // that it was estimated by; 0: exact, or given
};

/// The mean over queries drawn at random, each with its documents in random order; of the queries that have
/// a rank. Exact where the user has an examination_law(), else estimated by `lists` seeded lists.
Examination examination_of(const ClickModel& user, const Dataset& train, std::int64_t ranks,
                           std::int64_t lists, std::int64_t fold, const std::string& user_name);

/// The rule of a fold and a user. All seeds share it.
struct PlannedFairness {
  TrialFairness fairness;
  Examination examination;
};
PlannedFairness make_trial_fairness(const GroupSettings& groups, const std::vector<double>& beta,
                                    const ClickModel& user, const Dataset& train, std::int64_t cutoff,
                                    std::int64_t fold, const std::string& user_name);

}  // namespace olrank
