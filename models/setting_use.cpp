#include "models/setting_use.h"

#include <fmt/format.h>

#include <array>

namespace olrank {
namespace {

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
bool has_scoring_function(const RankerKindRow& row) {
  return !row.is_external;
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
bool on_device(const RankerKindRow& row) {
  return row.on_device;
}
bool by_epsilon(const RankerKindRow& row) {
  return row.bandit == BanditUse::kEpsilon;
}
bool by_duels(const RankerKindRow& row) {
  return row.bandit == BanditUse::kDuels;
}

bool by_proximal_steps(const RankerKindRow& row) {
  return row.bandit == BanditUse::kProximal;
}

bool by_interventions(const RankerKindRow& row) {
  return row.bandit == BanditUse::kInterventions;
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
bool uses_gain(const RankerSettings& settings) {
  return settings.kind == RankerKind::kFairCo || settings.fair.fair == Fairness::kFairCo;
}
bool searches_templates(const RankerSettings& settings) {
  return settings.fair.fair == Fairness::kFairExp;
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
    SettingUse{"network", has_scoring_function},
    SettingUse{"module", may_have_network, is_module, kModule},
    SettingUse{"module_state", may_have_network, is_module, kModule},
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
    SettingUse{"refine", with_orders,
               [](const RankerSettings& settings) { return !follows_posterior(settings.explore.list); },
               "another list than sample or ucb"},
    SettingUse{"pairs", with_pair_rule},
    SettingUse{"examined_after", with_pair_rule},
    SettingUse{"debias",
               [](const RankerKindRow& row) { return with_pair_rule(row) || by_interventions(row); }},
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
    SettingUse{"training_kernel", on_device, has_full_batches, kSumLoss},
    SettingUse{"exploration", by_epsilon},
    SettingUse{"epsilon", by_epsilon,
               [](const RankerSettings& settings) {
                 return settings.bandit.exploration == SimpleExploration::kEpsilon;
               },
               "exploration = \"epsilon\""},
    SettingUse{"exploration_radius", by_duels},
    SettingUse{"interleaving", by_duels},
    SettingUse{"candidates", [](const RankerKindRow& row) { return row.multileaves; }},
    SettingUse{"exposure_clip", by_proximal_steps},
    SettingUse{"refresh_rounds",
               [](const RankerKindRow& row) { return by_proximal_steps(row) || by_interventions(row); }},
    SettingUse{"fair", with_fair_lists},
    SettingUse{"template_search", with_fair_lists, searches_templates, "fair = \"fairexp\""},
    SettingUse{
        "fair_gain",
        [](const RankerKindRow& row) { return with_fair_lists(row) || row.kind == RankerKind::kFairCo; },
        uses_gain, "fair = \"fairco\""},
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
