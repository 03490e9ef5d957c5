#include "models/ranker_factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/runtime/execution_context.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/baselines/external_adapter.h"
#include "models/clickgp/click_belief.h"
#include "models/neural/ranker_network.h"
#include "models/ranker_memory.h"

namespace olrank {
namespace {

/// A click model adds to the score of a linear or additive model.
void check_click_start(const RankerSettings& settings, std::int64_t features,
                       std::span<const std::vector<float>> first_thetas) {
  if (first_thetas.size() == 1 && ClickFeatures::is_start(first_thetas.front(), features)) return;
  throw_error<InvalidArgument>(
      "Ranker '{}' starts from a linear or additive model of {}, but the model has other weights: choose "
      "another model, or kind = \"olranknet\" for a network.",
      settings.name, counted(features, "feature"));
}

void check_start(const RankerKindRow& row, const RankerSettings& settings, std::int64_t features,
                 std::span<const std::vector<float>> first_thetas) {
  if (!row.starts_from_model) {
    throw_error<InvalidArgument>(
        "Ranker '{}' cannot start from a model: '{}' refits its whole history and would forget the model. "
        "Choose {}.",
        settings.name, row.name,
        kinds_where([](const RankerKindRow& other) { return other.starts_from_model; }));
  }
  if (row.training == Training::kHistory && settings.trainer.restart == Restart::kFresh) {
    throw_error<InvalidArgument>(
        "Ranker '{}' starts from a model, but restart = \"fresh\" would forget it at the first training: "
        "use restart = \"warm\" or \"first\".",
        settings.name);
  }
  const auto members = static_cast<std::size_t>(row.is_ensemble() ? settings.posterior.members : 1);
  if (row.training == Training::kPosterior) return check_click_start(settings, features, first_thetas);
  const auto parameters = static_cast<std::size_t>(model_size(settings.network, features).parameters());
  for (const auto& theta : first_thetas) {
    if (first_thetas.size() == members && theta.size() == parameters) continue;
    throw_error<InvalidArgument>(
        "Ranker '{}' has {} members with {} parameters each, but the model has {} with {}: give the ranker "
        "the model's size.",
        settings.name, members, parameters, first_thetas.size(), theta.size());
  }
}

void check_form(const RankerKindRow& row, const RankerSettings& settings) {
  const bool linear = settings.network.network == NetworkForm::kLinear;
  if (row.forms == ModelForms::kEither || (row.forms == ModelForms::kLinear) == linear) return;
  throw_error<InvalidArgument>(
      "Ranker '{}' cannot have network = \"{}\", because every '{}' is {}: remove the setting, or choose "
      "another kind.",
      settings.name, name_of(settings.network.network), row.name, linear ? "a network" : "linear");
}

/// The exact covariance of a linear ranker has the size that budgets give.
void check_covariance(const RankerKindRow& row, const RankerSettings& settings) {
  const Covariance covariance = settings.posterior.covariance;
  if (row.evidence != OrderEvidence::kWidths || row.forms != ModelForms::kLinear ||
      covariance != Covariance::kInducing)
    return;
  throw_error<InvalidArgument>(
      "Ranker '{}' cannot have covariance = \"{}\", which is for networks, and every '{}' is linear: "
      "choose \"full\", \"diagonal\", \"diagonal-of-inverse\" or \"none\".",
      settings.name, name_of(covariance), row.name);
}

void check_step(const RankerKindRow& row, const RankerSettings& settings) {
  if (!row.step_is_share || settings.trainer.loss != LossForm::kSum ||
      settings.trainer.optimizer == Optimizer::kAdam || settings.trainer.learning_rate <= 1.0)
    return;
  throw_error<InvalidArgument>(
      "Ranker '{}' has learning_rate = {}, but with optimizer = \"{}\" it is a share of the largest stable "
      "step: at most 1.",
      settings.name, settings.trainer.learning_rate, name_of(settings.trainer.optimizer));
}

/// A sample that fits into no memory, and a history that keeps less than the covariance's dictionary.
void check_schedule(const RankerSettings& settings) {
  const TrainerSettings& trainer = settings.trainer;
  const std::int64_t memory = available_memory();
  const double sample = replay_bytes(settings, 1);
  if (trainer.retrain == Retrain::kGrowth && sample > static_cast<double>(memory)) {
    throw_error<InvalidArgument>(
        "Ranker '{}' has replay = {}, which takes {} with a single feature, but this machine has {}: draw "
        "fewer pairs.",
        settings.name, trainer.replay, readable_bytes(sample), readable_bytes(static_cast<double>(memory)));
  }
}

/// `expected` is a mean over matchings: pairs with weights.
void check_pairs(const RankerKindRow& row, const RankerSettings& settings) {
  if (settings.feedback.pairs != PairRule::kExpected || row.pairs == PairUse::kOwnPairs) return;
  if (row.pairs == PairUse::kWeighted && settings.trainer.loss == LossForm::kSum) return;
  throw_error<InvalidArgument>(
      "Ranker '{}' cannot weight its pairs: pairs = \"expected\" is for {} with loss = \"sum\". Choose "
      "\"matched\".",
      settings.name,
      kinds_where([](const RankerKindRow& other) { return other.pairs == PairUse::kWeighted; }));
}

/// Only networks with a history know how to draw parameters other than the first ones.
void check_restart(const RankerKindRow& row, const RankerSettings& settings) {
  if (row.training != Training::kAskedLabels || settings.trainer.restart != Restart::kFresh) return;
  throw_error<InvalidArgument>(
      "Ranker '{}' has restart = \"fresh\", but '{}' starts at its first parameters or goes on: use "
      "\"first\" or \"warm\".",
      settings.name, row.name);
}

/// Lists that follow the posterior need widths, and keep no certain order that a fair list could give up.
void check_list(const RankerKindRow& row, const RankerSettings& settings) {
  const bool has_rule = row.evidence == OrderEvidence::kWidths || row.evidence == OrderEvidence::kVotes;
  if (!has_rule || !follows_posterior(settings.explore.list)) return;
  const std::string_view list = name_of(settings.explore.list);
  if (row.evidence != OrderEvidence::kWidths) {
    throw_error<InvalidArgument>(
        "Ranker '{}' cannot have list = \"{}\", which needs widths, and '{}' has none: choose {}, or "
        "another list.",
        settings.name, list, row.name,
        kinds_where([](const RankerKindRow& other) { return other.evidence == OrderEvidence::kWidths; }));
  }
  if (settings.fair.fair == Fairness::kNone) return;
  throw_error<InvalidArgument>(
      "Ranker '{}' has list = \"{}\" and fair = \"{}\", which makes lists from certain orders: use fair = "
      "\"none\", or another list.",
      settings.name, list, name_of(settings.fair.fair));
}

}  // namespace

void check_sparse(const RankerSettings& settings) {
  const RankerKindRow& row = row_of(settings.kind);
  const bool module = settings.network.network == NetworkForm::kModule;
  if (row.takes_sparse && !module) return;
  throw_error<InvalidArgument>(
      "Ranker '{}' needs dense features, and the data are sparse: {}, or set data.layout = \"dense\", with "
      "enough memory for all zeros.",
      settings.name,
      row.takes_sparse ? std::string("choose another network than a module")
                       : fmt::format("choose {}", kinds_where([](const RankerKindRow& other) {
                                       return other.takes_sparse;
                                     })));
}

std::unique_ptr<OnlineRanker> make_ranker(const RankerSettings& settings, std::int64_t features,
                                          const TrialKeys& keys, std::int64_t cutoff,
                                          const RankerDependencies& dependencies) {
  const RankerKindRow& row = row_of(settings.kind);
  if (!dependencies.first_thetas.empty()) check_start(row, settings, features, dependencies.first_thetas);
  if (dependencies.sparse) check_sparse(settings);
  check_form(row, settings);
  check_covariance(row, settings);
  check_pairs(row, settings);
  check_list(row, settings);
  if (const RankerDevice* place = dependencies.device) {
    if (settings.network.network != NetworkForm::kModule)
      return std::make_unique<DeviceRanker>(features, settings, keys, cutoff, *place);
    return row.make({settings, features, keys, cutoff, dependencies});
  }
  if (row.needs_labels && dependencies.labels == nullptr) {
    throw_error<InvalidArgument>(
        "Ranker '{}' learns from true grades, as every '{}' does, and there are none here: choose a kind "
        "that learns from clicks.",
        settings.name, row.name);
  }
  return row.make({settings, features, keys, cutoff, dependencies});
}

void check_ranker(const RankerSettings& given, std::int64_t cutoff) {
  if (row_of(given.kind).is_external) {
    registered_ranker(given.name, given.own);
    return;  // it is made once its data are there
  }
  RankerSettings settings = given;
  if (has_module_file(given.network)) {
    // For how many features a file is shows once there are data; all else is as with another module.
    with_module_file(given.network);
    settings.network.module = "relu";
  }
  check_step(row_of(settings.kind), settings);
  check_schedule(settings);
  check_restart(row_of(settings.kind), settings);
  // A network may be too large even to be tried.
  const RankerMemory plan = memory_of_ranker(settings, {.features = 1, .rounds = 1, .cutoff = cutoff});
  const std::int64_t memory = available_memory();
  if (plan.bytes > memory) {
    throw_error<InvalidArgument>(
        "Ranker '{}' has {} parameters with a single feature and needs {}, but this machine has {}: {}.",
        settings.name, plan.parameters, readable_bytes(static_cast<double>(plan.bytes)),
        readable_bytes(static_cast<double>(memory)), advice_on_memory(plan, memory));
  }
  const LabelledQueries none;
  make_ranker(settings, 1, TrialKeys{}, cutoff, {.labels = &none});
}

}  // namespace olrank
