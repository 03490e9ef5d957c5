#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text/message_text.h"
#include "core/text/text_table.h"
#include "logs/off_policy.h"
#include "report/markup.h"
#include "report/page.h"

namespace olrank {
namespace {

nlohmann::ordered_json json_of(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

nlohmann::ordered_json json_of(const SlateSupport& support) {
  return {{"mean_weight", support.mean_weight},
          {"largest_weight", support.largest_weight},
          {"effective_lists", support.effective_lists},
          {"without_weight", support.without_weight}};
}

std::string text_of(const Interval& interval) {
  if (std::isnan(interval.low)) return fmt::format("{:.4f}", interval.value);
  return fmt::format("{:.4f} ({:.4f} to {:.4f})", interval.value, interval.low, interval.high);
}

std::string cell_of(const Interval& interval, int digits = 4) {
  if (std::isnan(interval.low)) return fixed_number(interval.value, digits);
  return fmt::format("{} <span class=\"half\">({} to {})</span>", fixed_number(interval.value, digits),
                     fixed_number(interval.low, digits), fixed_number(interval.high, digits));
}

bool has_too_few_lists(const OffPolicyResult& result, const OffPolicyResult::Policy& policy) {
  return !result.by_model_alone && policy.whole.effective_lists < OffPolicyResult::kFewestEffectiveLists;
}

/// Says what the estimates of a policy rest on.
std::vector<std::string> support_sentences(const OffPolicyRequest& request, const OffPolicyResult& result,
                                           const OffPolicyResult::Policy& policy) {
  const SlateSupport& whole = policy.whole;
  std::vector<std::string> sentences;
  if (!result.by_model_alone) {
    sentences.push_back(fmt::format(
        "{}: it would never have shown {:.1f} % of the lists; the mean weight is {:.2f} (1 where the log "
        "covers all that it may show) and the largest {:.1f}.",
        policy.name, 100.0 * whole.without_weight, whole.mean_weight, whole.largest_weight));
  }
  const auto weighed =
      std::count_if(policy.estimates.begin(), policy.estimates.end(),
                    [](const SlateEstimate& estimate) { return rests_on_weights(estimate.estimator); });
  if (weighed > 0 && has_too_few_lists(result, policy)) {
    sentences.push_back(fmt::format(
        "{}: do not decide by ips, rips, snips, snrips or cascade-dr. Their weights are worth {:.0f} "
        "lists, and below {} their intervals often miss the truth.",
        policy.name, whole.effective_lists, OffPolicyResult::kFewestEffectiveLists));
  }
  if (request.wants_model()) {
    sentences.push_back(
        fmt::format("{}: of what users are expected to see in its lists, {:.1f} % was never shown for its "
                    "query and rests on the click model's prior alone.",
                    policy.name, 100.0 * policy.unseen));
    if (weighed < std::ssize(policy.estimates))
      sentences.push_back(fmt::format(
          "{}: intervals of direct and intervention-aware take the click model as right, and miss the "
          "truth where it is not.",
          policy.name));
  }
  if (request.estimates.clip > 0.0 && !result.by_model_alone) {
    sentences.push_back(fmt::format(
        "With {:.0f} % confidence, whatever the distribution, its reward by prefixes is at least {:.4f}.",
        100.0 * request.estimates.confidence, policy.lower_bound));
  }
  return sentences;
}

/// Says what was left out, or counts as less than it was.
std::vector<std::string> gap_sentences(const OffPolicyRequest& request, const OffPolicyResult& result) {
  std::vector<std::string> sentences;
  if (result.by_model_alone) {
    sentences.push_back(
        request.policy.kind == ListPolicy::Kind::kCandidate
            ? "The policy's lists were not shown: estimates by weights are left out."
            : "No list of the learner has the probability that it was shown with: estimates by weights "
              "are left out. " +
                  unweighed_sentences(result));
  }
  if (result.own_lists) {
    sentences.push_back(fmt::format(
        "The estimates are those of the {} that the incumbent's arm has shown.{}",
        counted(result.lists, "list"),
        result.of_learner == 0 ? ""
                               : fmt::format(" The {} of the learner got {}.",
                                             counted(result.of_learner, "list"), text_of(result.learner))));
  }
  if (std::isnan(result.shown.low))
    sentences.emplace_back("The lists are of fewer than 20 queries, too few for intervals.");
  if (result.without_propensity > 0 && !result.by_model_alone)
    sentences.push_back(fmt::format("{} of the learner without probabilities {} left out.",
                                    counted(result.without_propensity, "list"),
                                    result.without_propensity == 1 ? "was" : "were"));
  if (result.beyond_weight > 0)
    sentences.push_back(fmt::format("Left out for probabilities that are too small for any weight: {}.",
                                    counted(result.beyond_weight, "list")));
  if (result.of_other_arms > 0 && !result.by_model_alone)
    sentences.push_back(fmt::format(
        "{} of other arms than the {} {} left out.", counted(result.of_other_arms, "list"),
        result.own_lists ? "incumbent" : "learner", result.of_other_arms == 1 ? "was" : "were"));
  if (result.without_order > 0)
    sentences.push_back(
        fmt::format("{} lists without the order of the policy were left out.", result.without_order));
  if (result.without_candidates > 0) {
    sentences.push_back(fmt::format(
        "{} lists have the shown documents alone, and count as if there were no others: start the service "
        "with --log-unshown.",
        result.without_candidates));
  }
  return sentences;
}

ReportFigure figure_of_differences(const OffPolicyRequest& request, const OffPolicyResult& result) {
  Plot plot;
  plot.kind = PlotKind::kDifferences;
  plot.title = "More reward a list than what was shown";
  plot.subtitle = fmt::format("{}, lists up to rank {}", name_of(request.reward), request.estimates.ranks);
  plot.x_name = "reward a list";
  plot.variant_name = "estimate";
  std::size_t style = 0;
  for (const OffPolicyResult::Policy& policy : result.policies) {
    for (const SlateEstimate& estimate : policy.estimates) {
      const Interval& difference = estimate.difference;
      PlotSeries row{policy.name, style, {{0.0, difference.value, difference.low, difference.high}}};
      row.variant = name_of(estimate.estimator);
      row.significant = (difference.low > 0.0 || difference.high < 0.0) &&
                        !(rests_on_weights(estimate.estimator) && has_too_few_lists(result, policy));
      plot.series.push_back(std::move(row));
    }
    ++style;
  }
  return figure_of(
      "", plot,
      fmt::format("Bars are intervals of {:.0f} %, from a bootstrap over queries; a full mark is "
                  "an interval without 0 that does not rest on too few lists.",
                  100.0 * request.estimates.confidence));
}

std::string table_of_weights(const OffPolicyResult& result) {
  HtmlTable table("Weights of prefixes", {"policy", "up to rank", "mean weight", "largest weight",
                                          "effective lists", "lists without weight"});
  for (const OffPolicyResult::Policy& policy : result.policies) {
    for (std::size_t rank = 0; rank < policy.support.size(); ++rank) {
      const SlateSupport& at = policy.support[rank];
      table.row(policy.name, {fmt::format("{}", rank + 1), fixed_number(at.mean_weight, 3),
                              fixed_number(at.largest_weight, 1), fixed_number(at.effective_lists, 0),
                              fixed_number(100.0 * at.without_weight, 1) + " %"});
    }
  }
  return table.html();
}

}  // namespace

std::string unweighed_sentences(const OffPolicyResult& result) {
  std::string text;
  if (result.without_propensity > 0) {
    text = fmt::format(
        "{} of the learner {} none. A service logs none for posterior samples (list = \"sample\"), fair "
        "lists, and lists that keep_top or max_displacement hold near the incumbent's order.",
        counted(result.without_propensity, "list"), result.without_propensity == 1 ? "has" : "have");
  }
  if (result.of_other_arms > 0) {
    text += fmt::format("{}{} {} of other arms, or drafted from two.", text.empty() ? "" : " ",
                        counted(result.of_other_arms, "list"), result.of_other_arms == 1 ? "is" : "are");
  }
  return text;
}

nlohmann::ordered_json off_policy_json(const OffPolicyRequest& request, const OffPolicyResult& result) {
  nlohmann::ordered_json json = {
      {"log", request.log},
      {"policy", request.policy.name()},
      {"reward", name_of(request.reward)},
      {"confidence", request.estimates.confidence},
      {"lists", result.lists},
      {"left_out",
       {{"without_propensity", result.by_model_alone ? 0 : result.without_propensity},
        {"beyond_weight", result.beyond_weight},
        {"of_other_arms", result.by_model_alone ? 0 : result.of_other_arms},
        {"without_order", result.without_order}}},
      {"without_candidates", result.without_candidates},
      {"shown", json_of(result.shown)}};
  if (result.own_lists) {
    json["own_lists"] = true;
    if (result.of_learner > 0)
      json["learner"] = {{"lists", result.of_learner}, {"shown", json_of(result.learner)}};
  }
  if (request.wants_model()) json["click_model"] = name_of(request.click_model);
  nlohmann::ordered_json policies = nlohmann::ordered_json::array();
  for (const OffPolicyResult::Policy& policy : result.policies) {
    nlohmann::ordered_json one = {{"name", policy.name}};
    for (const SlateEstimate& estimate : policy.estimates) {
      one["estimates"][std::string(name_of(estimate.estimator))] = {
          {"value", json_of(estimate.value)}, {"difference", json_of(estimate.difference)}};
    }
    if (!result.by_model_alone) one["whole_lists"] = json_of(policy.whole);
    for (const SlateSupport& support : policy.support) one["prefixes"].push_back(json_of(support));
    if (request.estimates.clip > 0.0 && !result.by_model_alone) one["lower_bound"] = policy.lower_bound;
    if (request.wants_model()) one["unseen"] = policy.unseen;
    policies.push_back(std::move(one));
  }
  json["policies"] = std::move(policies);
  return json;
}

std::string off_policy_text(const OffPolicyRequest& request, const OffPolicyResult& result,
                            std::int64_t columns) {
  TextTable table({{"policy", true},
                   {"estimate"},
                   {"reward a list"},
                   {"more than shown"},
                   {"weight", false, 2},
                   {"effective lists", false, 1}});
  table.add({"(as shown)", "", text_of(result.shown), "", "", fmt::format("{}", result.lists)});
  for (const OffPolicyResult::Policy& policy : result.policies) {
    const SlateSupport& whole = policy.whole;
    for (const SlateEstimate& estimate : policy.estimates) {
      const bool weighed = !result.by_model_alone && rests_on_weights(estimate.estimator);
      table.add({policy.name, std::string(name_of(estimate.estimator)), text_of(estimate.value),
                 text_of(estimate.difference), weighed ? fmt::format("{:.3f}", whole.mean_weight) : "–",
                 weighed ? fmt::format("{:.0f}{}", whole.effective_lists,
                                       has_too_few_lists(result, policy) ? ", too few" : "")
                         : "–"});
    }
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  std::string text = fitted.text + hidden_columns_text(fitted.hidden, columns);
  for (const OffPolicyResult::Policy& policy : result.policies) {
    for (const std::string& sentence : support_sentences(request, result, policy)) text += "\n" + sentence;
    text += '\n';
  }
  for (const std::string& sentence : gap_sentences(request, result)) text += "\n" + sentence + "\n";
  return text;
}

std::string off_policy_page(const OffPolicyRequest& request, const OffPolicyResult& result) {
  Page page({"olrank ope",
             "What would other rankers have got?",
             {escape_html(fmt::format("From {} in {}, of which each got a reward of {} as it was shown.",
                                      counted(result.lists, "list"), request.log, text_of(result.shown))),
              escape_html(fmt::format("Policy: {}. Reward: {}.", request.policy.name(),
                                      name_of(request.reward)))}});
  page.section("Estimates");
  page.figures({figure_of_differences(request, result)});
  HtmlTable table("Estimates", {"policy", "estimate", "reward a list", "more than shown"});
  for (const OffPolicyResult::Policy& policy : result.policies) {
    for (const SlateEstimate& estimate : policy.estimates) {
      table.row(policy.name, {escape_html(name_of(estimate.estimator)), cell_of(estimate.value),
                              cell_of(estimate.difference)});
    }
  }
  page.add(table.html());
  page.end_section();
  page.section("What they rest on");
  for (const OffPolicyResult::Policy& policy : result.policies)
    page.list(support_sentences(request, result, policy));
  page.list(gap_sentences(request, result));
  if (!result.by_model_alone) page.add(table_of_weights(result));
  page.end_section();
  page.section("How to read it");
  page.list({
      "ips, rips and their divided forms snips and snrips weigh what was shown by how likely the other "
      "ranker "
      "shows it; what it alone would show counts as nothing.",
      "direct is what a click model that is fitted to the log expects of the other ranker's lists; "
      "intervention-aware goes by the clicks of each document for each time that it was seen.",
      "cascade-dr corrects direct by weights: it is right where the model or the weights are.",
      "Where they disagree, look at the weights first: a mean weight far below 1 says that the log does "
      "not "
      "cover the other ranker.",
  });
  page.end_section();
  return page.finish();
}

}  // namespace olrank
