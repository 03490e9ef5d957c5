#include "models/ranker_factory.h"

#include <fmt/format.h>

#include <array>

#include "core/runtime/execution_context.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/baselines/baselines.h"
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

/// A sample that fits into no memory.
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

using Kinds = bool (*)(const RankerKindRow& row);
using Condition = bool (*)(const RankerSettings& settings);

/// Which rankers have a setting. Those of all kinds have no rule.
struct SettingUse {
  std::string_view key;
  Kinds kinds;
  Condition counts = nullptr;    // under further settings of the same ranker; null: always
  std::string_view needed = {};  // what `counts` asks for, as a configuration says it
};

bool with_widths(const RankerKindRow& row) {
  return row.evidence == OrderEvidence::kWidths;
}
bool with_votes(const RankerKindRow& row) {
  return row.evidence == OrderEvidence::kVotes;
}
bool with_probabilities(const RankerKindRow& row) {
  return row.evidence == OrderEvidence::kProbabilities;
}
bool with_orders(const RankerKindRow& row) {
  return with_widths(row) || with_votes(row);
}
bool with_estimates(const RankerKindRow& row) {
  return row.training == Training::kEstimates;
}
bool with_fair_lists(const RankerKindRow& row) {
  return row.has_orders();
}
bool with_delta(const RankerKindRow& row) {
  return with_widths(row) || row.evidence == OrderEvidence::kClickCounts || with_probabilities(row);
}
bool may_have_network(const RankerKindRow& row) {
  return row.forms != ModelForms::kLinear;
}
bool with_history(const RankerKindRow& row) {
  return row.training == Training::kHistory;
}
bool with_newton_or_history(const RankerKindRow& row) {
  return row.training == Training::kNewton || with_history(row);
}
bool with_steps_of_a_size(const RankerKindRow& row) {
  return row.training != Training::kNewton && row.training != Training::kPosterior &&
         row.training != Training::kNone;
}
bool with_passes(const RankerKindRow& row) {
  return row.training == Training::kLabels || with_history(row);
}
bool with_batches(const RankerKindRow& row) {
  return row.training == Training::kAskedLabels || with_estimates(row) || with_passes(row);
}
bool with_steps(const RankerKindRow& row) {
  return row.training == Training::kAskedLabels || with_estimates(row) || with_newton_or_history(row);
}
bool with_width_covariance(const RankerKindRow& row) {
  return with_widths(row) && with_history(row);
}
bool with_pair_rule(const RankerKindRow& row) {
  return row.pairs != PairUse::kOwnPairs;
}
bool by_epsilon(const RankerKindRow& row) {
  return row.bandit == BanditUse::kEpsilon;
}
bool by_duels(const RankerKindRow& row) {
  return row.bandit == BanditUse::kDuels;
}

bool is_network(const RankerSettings& settings) {
  return settings.network.network != NetworkForm::kLinear;
}
bool is_module(const RankerSettings& settings) {
  return settings.network.network == NetworkForm::kModule;
}
bool is_theory(const RankerSettings& settings) {
  return settings.explore.alpha_schedule == AlphaSchedule::kTheory;
}
/// Labels are learned in mini-batches whatever `loss` says.
bool has_mean_loss(const RankerSettings& settings) {
  return row_of(settings.kind).training != Training::kHistory || settings.trainer.loss == LossForm::kMean;
}
/// Only networks that train on their history have both losses.
bool has_full_batches(const RankerSettings& settings) {
  return row_of(settings.kind).training != Training::kHistory || settings.trainer.loss == LossForm::kSum;
}

/// Linear estimates are solved exactly.
bool takes_steps(const RankerSettings& settings) {
  return row_of(settings.kind).training != Training::kEstimates || is_network(settings);
}
bool has_batches(const RankerSettings& settings) {
  return takes_steps(settings) && has_mean_loss(settings);
}
bool steps_in_full_batches(const RankerSettings& settings) {
  return takes_steps(settings) && has_full_batches(settings);
}
bool has_delta(const RankerSettings& settings) {
  return row_of(settings.kind).evidence != OrderEvidence::kWidths || is_theory(settings);
}
bool retrains_on_growth(const RankerSettings& settings) {
  return settings.trainer.retrain == Retrain::kGrowth;
}

constexpr std::string_view kGrowth = "retrain = \"growth\"";
constexpr std::string_view kNetwork = "network = \"mlp\"";
constexpr std::string_view kModule = "network = \"module\"";
constexpr std::string_view kTheory = "alpha_schedule = \"theory\"";
constexpr std::string_view kSumLoss = "loss = \"sum\"";
constexpr std::string_view kSumLossOrNetwork = "loss = \"sum\", or for fairco network = \"mlp\"";
constexpr std::string_view kMeanLossOrNetwork = "loss = \"mean\", or for fairco network = \"mlp\"";
constexpr std::string_view kMeanLoss = "loss = \"mean\"";

constexpr std::array kUses = {
    SettingUse{"start_from", [](const RankerKindRow& row) { return row.starts_from_model; }},
    SettingUse{"trust_code", [](const RankerKindRow& row) { return row.starts_from_model; }},
    SettingUse{"own", [](const RankerKindRow& row) { return row.is_external; }},
    SettingUse{"network", [](const RankerKindRow& row) { return !row.is_external; }},
    SettingUse{"module", may_have_network, is_module, kModule},
    SettingUse{"activation", may_have_network, is_module, kModule},
    SettingUse{"width", may_have_network, is_network, kNetwork},
    SettingUse{"depth", may_have_network, is_network, kNetwork},
    SettingUse{"parameterisation", may_have_network, is_network, kNetwork},
    SettingUse{"initialisation", may_have_network, is_network, kNetwork},
    SettingUse{"scaling", with_history},
    SettingUse{"covariance", with_widths},
    SettingUse{"form", with_width_covariance,
               [](const RankerSettings& settings) {
                 return settings.posterior.covariance == Covariance::kFull ||
                        settings.posterior.has_shadow();
               },
               "covariance = \"full\""},
    SettingUse{"budget", with_width_covariance,
               [](const RankerSettings& settings) {
                 return settings.posterior.covariance == Covariance::kInducing;
               },
               "covariance = \"inducing\""},
    SettingUse{
        "shadow", with_width_covariance,
        [](const RankerSettings& settings) { return settings.posterior.covariance != Covariance::kFull; },
        "another covariance than full"},
    SettingUse{"observe_at", with_width_covariance},
    SettingUse{"lambda", [](const RankerKindRow& row) { return with_orders(row) || with_estimates(row); }},
    SettingUse{"members", with_votes},
    SettingUse{"noise_variance", with_votes},
    SettingUse{"prior_noise", [](const RankerKindRow& row) { return with_votes(row) && with_history(row); },
               has_full_batches, kSumLoss},
    SettingUse{"alpha", with_widths, [](const RankerSettings& settings) { return !is_theory(settings); },
               "alpha_schedule = \"constant\""},
    SettingUse{"alpha_schedule", with_widths},
    SettingUse{"c1", with_widths, is_theory, kTheory},
    SettingUse{"c2", with_widths, is_theory, kTheory},
    SettingUse{"delta", with_delta, has_delta, kTheory},
    SettingUse{"list", with_orders},
    SettingUse{"refine", with_orders},
    SettingUse{"pairs", with_pair_rule},
    SettingUse{"examined_after", with_pair_rule},
    SettingUse{"debias", with_pair_rule},
    SettingUse{"optimizer", with_passes},
    SettingUse{"loss", with_newton_or_history},
    SettingUse{"restart",
               [](const RankerKindRow& row) {
                 return with_history(row) || row.training == Training::kAskedLabels;
               }},
    SettingUse{"learning_rate", with_steps_of_a_size, takes_steps, kNetwork},
    SettingUse{"learning_rate_decay", with_steps_of_a_size, steps_in_full_batches, kSumLossOrNetwork},
    SettingUse{"steps", with_steps, steps_in_full_batches, kSumLossOrNetwork},
    SettingUse{"retrain", with_newton_or_history, has_full_batches, kSumLoss},
    SettingUse{"retrain_growth", with_newton_or_history, retrains_on_growth, kGrowth},
    SettingUse{"replay_steps", with_newton_or_history, retrains_on_growth, kGrowth},
    SettingUse{"replay", with_newton_or_history, retrains_on_growth, kGrowth},
    SettingUse{"epochs", with_passes, has_mean_loss, kMeanLoss},
    SettingUse{"batch", with_batches, has_batches, kMeanLossOrNetwork},
    SettingUse{"training_kernel", [](const RankerKindRow& row) { return row.on_device; }, has_full_batches,
               kSumLoss},
    SettingUse{"exploration", by_epsilon},
    SettingUse{"epsilon", by_epsilon,
               [](const RankerSettings& settings) {
                 return settings.bandit.exploration == SimpleExploration::kEpsilon;
               },
               "exploration = \"epsilon\""},
    SettingUse{"exploration_radius", by_duels},
    SettingUse{"interleaving", by_duels},
    SettingUse{"candidates", [](const RankerKindRow& row) { return row.multileaves; }},
    SettingUse{"fair", with_fair_lists},
    SettingUse{"template_search", with_fair_lists,
               [](const RankerSettings& settings) { return settings.fair.fair == Fairness::kFairExp; },
               "fair = \"fairexp\""},
    SettingUse{
        "fair_gain",
        [](const RankerKindRow& row) { return with_fair_lists(row) || row.kind == RankerKind::kFairCo; },
        [](const RankerSettings& settings) {
          return settings.kind == RankerKind::kFairCo || settings.fair.fair == Fairness::kFairCo;
        },
        "fair = \"fairco\""},
    SettingUse{"terms", with_probabilities},
    SettingUse{"memory_limit", with_probabilities},
    SettingUse{"forget", with_probabilities},
    SettingUse{"explore_floor", with_probabilities,
               [](const RankerSettings& settings) { return settings.fair.fair == Fairness::kNone; },
               "fair = \"none\""},
};

const SettingUse* use_of(std::string_view key) {
  for (const SettingUse& use : kUses) {
    if (use.key == key) return &use;
  }
  return nullptr;
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

bool kind_has(RankerKind kind, std::string_view key) {
  const SettingUse* use = use_of(key);
  return use == nullptr || use->kinds(row_of(kind));
}

std::optional<std::string> why_ignored(const RankerSettings& settings, std::string_view key) {
  const SettingUse* use = use_of(key);
  if (use == nullptr) return std::nullopt;
  if (!use->kinds(row_of(settings.kind))) {
    return fmt::format("kind \"{}\" has no '{}', only {}. Remove it, or choose another kind",
                       name_of(settings.kind), key, kinds_where(use->kinds));
  }
  if (use->counts == nullptr || use->counts(settings)) return std::nullopt;
  return fmt::format("it counts only with {}. Remove it, or change that", use->needed);
}

}  // namespace olrank
