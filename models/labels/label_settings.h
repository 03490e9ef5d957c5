#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/metrics/metric_options.h"
#include "core/ops/list_loss.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "models/skeleton/network_settings.h"

namespace olrank {

/// How a model is fitted to labels. kAdam: mini-batches of queries. kLbfgs: all queries at once.
/// kOgdAverage: one query a step, and the mean of all iterates. kProximal: accelerated proximal gradient on
/// all queries.
enum class LabelOptimizer { kAdam, kLbfgs, kOgdAverage, kProximal };
/// The norm of a ball around 0.
enum class BallNorm { kL2, kL1 };

/// One model from labels: the objective (mean over queries of the loss, plus penalties) and how it is
/// minimised.
struct LabelSettings {
  ListLoss loss = ListLoss::kListNet;
  double smoothing = 1.0;      // σ of smooth-dcg
  std::int64_t smooth_at = 1;  // k of the DCG@k of smooth-dcg
  bool pair_mean = false;
  NetworkSettings network;
  LabelOptimizer optimizer = LabelOptimizer::kAdam;
  double l2 = 0.0;      // λ of λ/2 ‖w‖²
  double l1 = 0.0;      // of ‖w‖₁
  double radius = 0.0;  // W of ‖w‖ ≤ W; 0: no bound
  BallNorm radius_norm = BallNorm::kL2;
  std::int64_t epochs = 0;     // 0: by optimizer
  std::int64_t batch = 32;     // queries
  double learning_rate = 0.0;  // 0: by optimizer and network
  double learning_rate_decay = 1.0;
  double tolerance = 1e-6;
  std::int64_t patience = 0;  // 0: never stop early
  std::int64_t cutoff = 10;   // k of the validation NDCG@k
  EmptyQueries empty_queries = EmptyQueries::kZero;
  std::vector<std::int64_t> seeds = {1};

  /// Adam fits the usual parameterisation better: docs/evidence/DEFAULTS.md, "Training from labels".
  LabelSettings() { network.parameterisation = Parameterisation::kStandard; }

  static const Schema& schema();

  static constexpr double kAdamStep = 0.01;
  /// The number of passes, where 0 stands for the one of the optimizer.
  std::int64_t most_epochs() const;
  ListLossForm loss_form(int most_grade) const;
};

template <>
struct EnumNames<LabelOptimizer> {
  static constexpr std::array values =
      names_in_order<LabelOptimizer>("adam", "lbfgs", "ogd-average", "proximal");
};

template <>
struct EnumNames<BallNorm> {
  static constexpr std::array values = names_in_order<BallNorm>("l2", "l1");
};

/// Why a setting that was given counts for nothing with the others, as the rest of a sentence; nothing if
/// it counts.
std::optional<std::string> why_ignored(const LabelSettings& settings, std::string_view key);

/// Throws InvalidArgument for a loss that the optimizer cannot minimise and for other settings that
/// exclude each other.
void check_label_settings(const LabelSettings& settings);

}  // namespace olrank
