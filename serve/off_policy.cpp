#include "serve/off_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/data/doc_finder.h"
#include "core/error.h"
#include "core/io/fingerprint.h"
#include "core/settings/choice.h"
#include "core/text/nearest.h"
#include "core/text/text_table.h"
#include "jobs/saved_trial.h"
#include "models/model_scorer.h"
#include "models/plackett_luce_gradient.h"
#include "serve/shown_log.h"

namespace olrank {
namespace {

/// A list of the log, by the numbers of its candidates.
struct LoggedList {
  std::uint64_t cluster = 0;
  std::int64_t query = -1;  // of the data
  std::vector<std::int32_t> shown;
  std::vector<std::int32_t> incumbent;
};

/// One policy's scores, and what it would have done.
class ComparedPolicy {
 public:
  ComparedPolicy(const std::string& named, const OffPolicyRequest& request, const Dataset* data,
                 ExecutionContext& context)
      : name_(named), estimates_(request.estimates) {
    if (named.empty()) return;  // the incumbent has no model
    ModelScorer scorer(load_model(model_file_of(named), code_if(request.trust_code)));
    if (data != nullptr) {
      of_data_ = scores_of_all(scorer, fitted_to_model(*data, scorer.model(), "--data", context), context);
      return;
    }
    // The log has inputs, not raw features.
    LoadedModel model = scorer.model();
    FittedNormaliser none;
    none.features = model.normaliser.columns();
    none.cosines = model.normaliser.cosines;
    model.normaliser = none;
    scorer_ = std::make_unique<ModelScorer>(std::move(model));
  }

  const std::string& name() const { return name_; }
  SlateEstimates& estimates() { return estimates_; }

  std::span<const double> scores(const FeedbackRecord& record, const LoggedList& list, const Dataset* data,
                                 Scratch& scratch) {
    if (data != nullptr) {
      const std::int64_t begin = data->offset(list.query);
      return std::span(of_data_).subspan(begin, data->docs_of(list.query));
    }
    if (record.columns != scorer_->features()) {
      throw InvalidArgument(fmt::format(
          "The log has documents of {} inputs, and {} takes {}: choose a model of the same service.",
          record.columns, name_, scorer_->features()));
    }
    scores_.resize(record.docs.size());
    const std::int64_t offsets[] = {0, std::ssize(record.docs)};
    scorer_->score(scratch, record.features(), offsets, scores_);
    return scores_;
  }

 private:
  std::string name_;
  SlateEstimates estimates_;
  std::vector<double> of_data_;
  std::unique_ptr<ModelScorer> scorer_;
  std::vector<double> scores_;
};

/// Resolves the documents of a record.
class Documents {
 public:
  explicit Documents(const Dataset* data) : data_(data) {
    if (data == nullptr) return;
    finder_ = std::make_unique<DocFinder>(*data);
    for (std::int64_t query = 0; query < data->queries(); ++query)
      queries_.emplace(data->qid(query), query);
  }

  /// What is wrong with the record; empty if nothing is.
  std::string resolve(const FeedbackRecord& record, LoggedList& list) {
    list.cluster = fingerprint_of(record.query).low;
    list.shown.clear();
    list.incumbent.clear();
    if (data_ == nullptr) {
      if (record.inputs.empty())
        return "The log has no inputs of documents: give the data that it refers to by --data.";
      for (std::int32_t doc = 0; doc < record.shown(); ++doc) list.shown.push_back(doc);
      for (const DocId& id : record.incumbent) {
        const auto found = std::find(record.docs.begin(), record.docs.end(), id);
        // Where the log has the shown documents alone, the others change no order among them.
        if (found != record.docs.end())
          list.incumbent.push_back(static_cast<std::int32_t>(found - record.docs.begin()));
      }
      return "";
    }
    const auto query = queries_.find(record.query);
    if (query == queries_.end()) return fmt::format("The data has no query '{}'.", record.query);
    list.query = query->second;
    const auto resolve_all = [&](std::span<const DocId> ids, std::vector<std::int32_t>& docs) {
      for (const DocId& id : ids) {
        const std::int32_t doc = id.is_number ? number_of(id.text) : finder_->by_label(list.query, id.text);
        if (doc < 0 || doc >= data_->docs_of(list.query))
          return fmt::format("Query '{}' of the data has no document '{}'.", record.query, id.text);
        docs.push_back(doc);
      }
      return std::string();
    };
    if (std::string wrong = resolve_all(std::span(record.docs).first(record.shown()), list.shown);
        !wrong.empty())
      return wrong;
    return resolve_all(record.incumbent, list.incumbent);
  }

  std::int64_t candidates(const FeedbackRecord& record, const LoggedList& list) const {
    return data_ == nullptr ? std::ssize(record.docs) : data_->docs_of(list.query);
  }

 private:
  static std::int32_t number_of(const std::string& text) {
    return text.size() < 9 ? static_cast<std::int32_t>(std::stol(text)) : -1;
  }

  const Dataset* data_;
  std::unique_ptr<DocFinder> finder_;
  std::unordered_map<std::string_view, std::int64_t> queries_;
};

double reward_at(ClickReward reward, std::size_t rank, bool first) {
  if (reward == ClickReward::kDcg) return 1.0 / std::log2(static_cast<double>(rank) + 2.0);
  return reward == ClickReward::kFirstClick && !first ? 0.0 : 1.0;
}

/// Goes over the lines of a log.
class OffPolicy {
 public:
  OffPolicy(const OffPolicyRequest& request, const Dataset* data, ExecutionContext& context)
      : request_(request), data_(data), context_(context), documents_(data) {
    const bool by_models = request.policy.kind != ListPolicy::Kind::kIncumbent;
    for (const std::string& model : by_models ? request.models : std::vector<std::string>{""})
      policies_.emplace_back(model, request, data, context);
  }

  OffPolicyResult run() {
    for_each_shown_list(request_.log, [this](const LoggedLine& line) { take(line); });
    return finish();
  }

 private:
  void take(const LoggedLine& line) {
    const FeedbackRecord& record = line.record;
    if (record.propensity.empty()) {
      ++result_.without_propensity;
      return;
    }
    if (const std::string wrong = documents_.resolve(record, list_); !wrong.empty())
      throw DataError(line.file, line.number, 1, wrong);
    const bool by_incumbent = request_.policy.kind == ListPolicy::Kind::kIncumbent;
    if (by_incumbent && list_.incumbent.empty()) {
      ++result_.without_incumbent;
      return;
    }
    if (documents_.candidates(record, list_) == record.shown() && data_ == nullptr && !record.has_unshown)
      ++result_.without_candidates;
    rewards_.clear();
    bool first = true;
    for (std::size_t rank = 0; rank < record.clicks.size(); ++rank) {
      rewards_.push_back(record.clicks[rank] != 0 ? reward_at(request_.reward, rank, first) : 0.0);
      first = first && record.clicks[rank] == 0;
    }
    for (ComparedPolicy& policy : policies_) {
      target_.resize(list_.shown.size());
      if (by_incumbent) {
        incumbent_scores(record);
        ListPolicy{}.probabilities(scores_, list_.shown, target_);
      } else {
        const auto scores = policy.scores(record, list_, data_, context_.scratch());
        request_.policy.probabilities(scores, list_.shown, target_);
      }
      try {
        policy.estimates().add({list_.cluster, rewards_, record.propensity, target_});
      } catch (const InvalidArgument& wrong) {
        throw DataError(line.file, line.number, 1, wrong.what());
      }
    }
    ++result_.lists;
  }

  /// Scores whose order is the incumbent's.
  void incumbent_scores(const FeedbackRecord& record) {
    scores_.assign(static_cast<std::size_t>(documents_.candidates(record, list_)), -1e9);
    for (std::size_t rank = 0; rank < list_.incumbent.size(); ++rank)
      scores_[list_.incumbent[rank]] = -static_cast<double>(rank);
  }

  OffPolicyResult finish() {
    if (result_.lists == 0) {
      throw InvalidArgument(
          result_.without_incumbent > 0 ? fmt::format("None of the lists in {} has the order of an "
                                                      "incumbent: send 'incumbent' with requests.",
                                                      request_.log)
          : result_.without_propensity > 0
              ? fmt::format(
                    "None of the {} lists in {} has probabilities ('propensity'), without which nothing "
                    "follows for other rankers: lists of posterior samples, of fair and of interleaved "
                    "rankers have none.",
                    result_.without_propensity, request_.log)
              : fmt::format("{} has no lists.", request_.log));
    }
    result_.shown = policies_.front().estimates().shown();
    for (ComparedPolicy& policy : policies_) {
      result_.policies.push_back({policy.name().empty() ? "incumbent" : policy.name(),
                                  policy.estimates().estimates(), policy.estimates().support(),
                                  policy.estimates().whole_support(),
                                  request_.estimates.clip > 0.0 ? policy.estimates().lower_bound() : 0.0});
    }
    return result_;
  }

  const OffPolicyRequest& request_;
  const Dataset* data_;
  ExecutionContext& context_;
  Documents documents_;
  std::vector<ComparedPolicy> policies_;
  OffPolicyResult result_;
  LoggedList list_;
  std::vector<double> rewards_;
  std::vector<double> target_;
  std::vector<double> scores_;
};

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

}  // namespace

ListPolicy ListPolicy::parse(const std::string& text) {
  if (text == "greedy") return {Kind::kGreedy};
  if (text == "plackett-luce") return {Kind::kPlackettLuce};
  if (text == "incumbent") return {Kind::kIncumbent};
  constexpr std::string_view kEpsilon = "epsilon=";
  if (text.starts_with(kEpsilon)) {
    char* end = nullptr;
    const double epsilon = std::strtod(text.c_str() + kEpsilon.size(), &end);
    if (*end == '\0' && end != text.c_str() + kEpsilon.size() && epsilon >= 0.0 && epsilon <= 1.0)
      return {Kind::kEpsilon, epsilon};
    throw InvalidArgument(fmt::format("--policy {}: ε must be a number from 0 to 1.", text));
  }
  throw InvalidArgument(fmt::format(
      "--policy must be greedy, plackett-luce, epsilon=0.1 or incumbent, not '{}': other lists have no "
      "probabilities that follow from scores.",
      text));
}

std::string ListPolicy::name() const {
  switch (kind) {
    case Kind::kGreedy:
      return "greedy";
    case Kind::kPlackettLuce:
      return "plackett-luce";
    case Kind::kEpsilon:
      return fmt::format("epsilon={}", epsilon);
    case Kind::kIncumbent:
      return "incumbent";
  }
  return "";
}

void ListPolicy::probabilities(std::span<const double> scores, std::span<const std::int32_t> list,
                               std::span<double> probabilities) const {
  std::vector<bool> placed(scores.size(), false);
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const auto left = static_cast<double>(scores.size() - rank);
    double sum = 0.0;    // of e^(score − that of the list's document) over those left
    double equal = 0.0;  // documents left with its score; any of them may come first
    bool best = true;
    const double mine = scores[list[rank]];
    for (std::size_t doc = 0; doc < scores.size(); ++doc) {
      if (placed[doc]) continue;
      if (kind == Kind::kPlackettLuce) sum += std::exp(scores[doc] - mine);
      equal += scores[doc] == mine ? 1.0 : 0.0;
      best = best && scores[doc] <= mine;
    }
    placed[list[rank]] = true;
    if (kind == Kind::kPlackettLuce) {
      probabilities[rank] = 1.0 / sum;
    } else {
      probabilities[rank] = (best ? (1.0 - epsilon) / equal : 0.0) + epsilon / left;
    }
  }
}

OffPolicyResult evaluate_off_policy(const OffPolicyRequest& request, const Dataset* data,
                                    ExecutionContext& context) {
  return OffPolicy(request, data, context).run();
}

nlohmann::ordered_json off_policy_json(const OffPolicyRequest& request, const OffPolicyResult& result) {
  nlohmann::ordered_json json = {{"log", request.log},
                                 {"policy", request.policy.name()},
                                 {"reward", name_of(request.reward)},
                                 {"confidence", request.estimates.confidence},
                                 {"lists", result.lists},
                                 {"left_out",
                                  {{"without_propensity", result.without_propensity},
                                   {"without_incumbent", result.without_incumbent}}},
                                 {"without_candidates", result.without_candidates},
                                 {"shown", json_of(result.shown)}};
  nlohmann::ordered_json policies = nlohmann::ordered_json::array();
  for (const OffPolicyResult::Policy& policy : result.policies) {
    nlohmann::ordered_json one = {{"name", policy.name}};
    for (const SlateEstimate& estimate : policy.estimates) {
      one["estimates"][std::string(name_of(estimate.estimator))] = {
          {"value", json_of(estimate.value)}, {"difference", json_of(estimate.difference)}};
    }
    one["whole_lists"] = json_of(policy.whole);
    for (const SlateSupport& support : policy.support) one["prefixes"].push_back(json_of(support));
    if (request.estimates.clip > 0.0) one["lower_bound"] = policy.lower_bound;
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
      table.add({policy.name, std::string(name_of(estimate.estimator)), text_of(estimate.value),
                 text_of(estimate.difference), fmt::format("{:.3f}", whole.mean_weight),
                 fmt::format("{:.0f}", whole.effective_lists)});
    }
  }
  const TextTable::Fitted fitted = table.fitted(columns);
  std::string text = fitted.text + hidden_columns_text(fitted.hidden, columns);
  for (const OffPolicyResult::Policy& policy : result.policies) {
    const SlateSupport& whole = policy.whole;
    text += fmt::format(
        "\n{}: it would never have shown {:.1f} % of the lists; the mean weight is {:.2f} (1 where the log "
        "covers all "
        "that it may show) and the largest {:.1f}.\n",
        policy.name, 100.0 * whole.without_weight, whole.mean_weight, whole.largest_weight);
    if (request.estimates.clip > 0.0) {
      text += fmt::format(
          "With {:.0f} % confidence, whatever the distribution, its reward by prefixes is at least "
          "{:.4f}.\n",
          100.0 * request.estimates.confidence, policy.lower_bound);
    }
  }
  if (std::isnan(result.shown.low))
    text += "\nThe lists are of fewer than 20 queries, too few for intervals.\n";
  if (result.without_propensity > 0)
    text += fmt::format("\n{} lists without probabilities were left out.\n", result.without_propensity);
  if (result.without_incumbent > 0)
    text += fmt::format("\n{} lists without the order of an incumbent were left out.\n",
                        result.without_incumbent);
  if (result.without_candidates > 0) {
    text += fmt::format(
        "\n{} lists have the shown documents alone, and count as if there were no others: start the "
        "service with --log-unshown.\n",
        result.without_candidates);
  }
  return text;
}

}  // namespace olrank
