#include "core/metrics/metric_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/io/folder.h"
#include "core/metrics/external_metric.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {

void apply_convention(Convention convention, MetricOptions& options) {
  options.gain = Gain::kExponential;
  options.discount = Discount::kLog2;
  options.ties = Ties::kDocIndex;
  options.empty_queries = EmptyQueries::kZero;
  options.short_lists = ShortLists::kScored;
  options.unretrieved = Unretrieved::kLast;
  switch (convention) {
    case Convention::kOlrank:
      break;
    case Convention::kLetor:
      // Eval-Score-4.0.pl: DCG() leaves positions 1 and 2 undiscounted; NDCG() fills no position beyond the
      // list, and the average over queries counts what is not filled as 0; sort by score over lines in
      // order.
      options.discount = Discount::kLetor;
      options.short_lists = ShortLists::kZero;
      break;
    case Convention::kLightgbm:
      // src/metric/rank_metric.hpp: "if all doc in this query are all negative, let its NDCG=1";
      // map_metric.hpp likewise; dcg_calculator.cpp: label_gain 2^i − 1, 1/log2(2 + i), std::stable_sort.
      options.empty_queries = EmptyQueries::kOne;
      break;
    case Convention::kTrecEval:
      // m_ndcg_cut.c: gain is the judgement, 1/log2(i + 2); form_res_rels.c: sorted by score, then by
      // document name, both descending, whatever the rank column says; documents not retrieved are never
      // shown.
      options.gain = Gain::kLinear;
      options.ties = Ties::kNameDescending;
      options.unretrieved = Unretrieved::kLost;
      break;
  }
}

void check_metric_options(const MetricOptions& options) {
  if (options.cutoffs.empty()) throw InvalidArgument("The list of cutoffs must not be empty.");
  for (auto cutoff = options.cutoffs.begin(); cutoff != options.cutoffs.end(); ++cutoff) {
    if (*cutoff < 1) throw_error<InvalidArgument>("A cutoff must be at least 1, not {}.", *cutoff);
    if (std::find(options.cutoffs.begin(), cutoff, *cutoff) != cutoff) {
      throw_error<InvalidArgument>("The cutoff {} is listed twice. Remove one of them.", *cutoff);
    }
  }
  if (options.precision_cutoff < 1 || options.err_cutoff < 1) {
    throw InvalidArgument("The cutoffs of precision and ERR must be at least 1.");
  }
  if (options.metrics == MetricSet::kTop) {
    for (const NamedMetric& metric : options.named) {
      if (!metric.whole_list()) continue;
      throw_error<InvalidArgument>("{} looks at the whole list, but only its top is evaluated.",
                                   metric.title());
    }
  }
  if (options.max_grade && (*options.max_grade < 0 || *options.max_grade > kHighestGrade)) {
    throw_error<InvalidArgument>("The largest grade must be between 0 and {}, not {}.", kHighestGrade,
                                 *options.max_grade);
  }
}

std::string describe_conventions(const MetricOptions& options) {
  std::string text = options.gain == Gain::kExponential ? "gain 2^grade - 1" : "gain = grade";
  text += options.discount == Discount::kLog2 ? ", discount 1/log2(rank + 2)"
                                              : ", discount 1/log2(rank + 1) from the third rank";
  text += " (rank from 0)";
  text +=
      options.ties == Ties::kDocIndex ? ", ties by document index" : ", ties by document name, descending";
  text += options.empty_queries == EmptyQueries::kZero  ? ", empty queries count 0"
          : options.empty_queries == EmptyQueries::kOne ? ", empty queries count 1"
                                                        : ", empty queries skipped";
  if (options.short_lists == ShortLists::kZero) text += ", NDCG@k of lists shorter than k is 0";
  if (options.unretrieved == Unretrieved::kLost) text += ", documents missing from a run are never shown";
  return text;
}

namespace {

enum class Cutoff { kRequired, kOptional, kNone };

struct MetricRow {
  MetricKind kind;
  std::string_view name;
  std::string_view title;
  Cutoff cutoff;
};

constexpr MetricRow kRows[] = {
    {MetricKind::kNdcg, "ndcg", "NDCG", Cutoff::kRequired},
    {MetricKind::kDcg, "dcg", "DCG", Cutoff::kRequired},
    {MetricKind::kErr, "err", "ERR", Cutoff::kRequired},
    {MetricKind::kPrecision, "p", "P", Cutoff::kRequired},
    {MetricKind::kMap, "map", "MAP", Cutoff::kOptional},
    {MetricKind::kMrr, "mrr", "MRR", Cutoff::kOptional},
    {MetricKind::kArp, "arp", "Average relevant position", Cutoff::kNone},
    {MetricKind::kPairAccuracy, "pair_accuracy", "Pair accuracy", Cutoff::kNone},
};

/// Cutoffs fit the counters of all readers, and no list is that long.
constexpr std::int64_t kLargestCutoff = 1'000'000'000;

const MetricRow& row_of(MetricKind kind) {
  return *std::find_if(std::begin(kRows), std::end(kRows),
                       [&](const MetricRow& row) { return row.kind == kind; });
}

const MetricRow* row_named(std::string_view word) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows),
                                   [&](const MetricRow& row) { return row.name == word; });
  return found == std::end(kRows) ? nullptr : found;
}

std::string with_cutoff(std::string_view text, std::int64_t cutoff) {
  return cutoff > 0 ? fmt::format("{}@{}", text, cutoff) : std::string(text);
}

std::string_view word_of(std::string_view name) {
  return name.substr(0, name.find('@'));
}

/// Metrics of programs. The number of a name is a hash of it, so that all processes put them into one
/// order.
class OwnMetrics {
 public:
  struct Registered {
    std::string description;
    ExternalMetric metric;
  };

  std::int64_t number_of(std::string_view name) {
    constexpr std::uint64_t kNumbers = std::uint64_t{1} << 39;  // reports have room for as many
    auto number = static_cast<std::int64_t>(1 + std::hash<std::string_view>{}(name) % kNumbers);
    const std::lock_guard<std::mutex> lock(mutex_);
    while (names_.try_emplace(number, name).first->second != name) ++number;
    return number;
  }
  std::string name_of(const NamedMetric& metric) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return names_.at(metric.cutoff);
  }
  std::shared_ptr<const Registered> registered(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = registered_.find(name);
    return found == registered_.end() ? nullptr : found->second;
  }
  bool add(const std::string& name, Registered metric) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return registered_.emplace(name, std::make_shared<const Registered>(std::move(metric))).second;
  }
  void remove(const std::string& name) {
    const auto last = registered(name);  // ends without the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    registered_.erase(name);
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::string> names_;
  std::map<std::string, std::shared_ptr<const Registered>> registered_;
};

OwnMetrics& own_metrics() {
  static OwnMetrics metrics;
  return metrics;
}

[[noreturn]] void refuse(std::string_view name, std::string_view origin) {
  const MetricRow* row = row_named(word_of(name));
  if (row == nullptr) {
    std::vector<std::string> words;
    for (const MetricRow& known : kRows) words.emplace_back(known.name);
    throw_error<InvalidArgument>(
        "{}: Unknown metric '{}'. {} The metrics are ndcg@K, dcg@K, err@K, p@K, map, map@K, mrr, mrr@K, "
        "arp and pair_accuracy, with a cutoff K of at least 1.",
        origin, name, did_you_mean(word_of(name), words));
  }
  if (name.find('@') == std::string_view::npos)
    throw_error<InvalidArgument>("{}: '{}' needs a cutoff: write {}@10, for example.", origin, name, name);
  if (row->cutoff == Cutoff::kNone)
    throw_error<InvalidArgument>("{}: '{}' has no cutoff: write {}.", origin, name, row->name);
  throw_error<InvalidArgument>("{}: The cutoff of '{}' must be an integer from 1 to {}.", origin, name,
                               kLargestCutoff);
}

}  // namespace

std::string NamedMetric::name() const {
  if (kind == MetricKind::kOwn) return own_metrics().name_of(*this);
  return with_cutoff(row_of(kind).name, cutoff);
}

std::string NamedMetric::title() const {
  if (kind == MetricKind::kOwn) return name();
  return with_cutoff(row_of(kind).title, cutoff);
}

std::optional<NamedMetric> metric_named(std::string_view name) {
  const std::string_view word = word_of(name);
  const MetricRow* row = row_named(word);
  if (row == nullptr) return std::nullopt;
  if (word.size() == name.size())
    return row->cutoff == Cutoff::kRequired ? std::nullopt : std::optional(NamedMetric{row->kind, 0});
  const std::string_view digits = name.substr(word.size() + 1);
  std::int64_t cutoff = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), cutoff);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || cutoff < 1 || cutoff > kLargestCutoff || row->cutoff == Cutoff::kNone) return std::nullopt;
  return NamedMetric{row->kind, cutoff};
}

NamedMetric own_metric(std::string_view name) {
  return {MetricKind::kOwn, own_metrics().number_of(name)};
}

std::string own_metric_description(const NamedMetric& metric) {
  const auto registered = own_metrics().registered(metric.name());
  return registered ? registered->description : "";
}

double own_metric_value(const NamedMetric& metric, const ScoredPart& part) {
  const std::string name = metric.name();
  const auto registered = own_metrics().registered(name);
  if (!registered) throw_error<InvalidArgument>("No metric named '{}' is registered.", name);
  const double value = registered->metric(part);
  if (std::isfinite(value)) return value;
  throw_error<InvalidArgument>("Metric '{}' is {} after round {}: return a finite number.", name, value,
                               part.round);
}

void register_metric(const std::string& name, const std::string& description, ExternalMetric metric) {
  if (!is_folder_name(name)) {
    throw_error<InvalidArgument>(
        "A metric cannot be named '{}': files of figures have that name, so use letters, digits and "
        "- _ . + =, without a leading dot.",
        name);
  }
  if (row_named(name) != nullptr)
    throw_error<InvalidArgument>("The metric '{}' is built in: choose another name.", name);
  if (description.empty() || description.find('\n') != std::string::npos)
    throw_error<InvalidArgument>("The description of metric '{}' must be one line.", name);
  if (!metric) throw_error<InvalidArgument>("The metric '{}' is empty: register a function.", name);
  if (!own_metrics().add(name, {description, std::move(metric)}))
    throw_error<InvalidArgument>(
        "There is a registered metric '{}' already: choose another name, or unregister it.", name);
}

void unregister_metric(const std::string& name) {
  own_metrics().remove(name);
}

std::vector<NamedMetric> parse_metrics(std::span<const std::string> names, std::string_view origin) {
  std::vector<NamedMetric> metrics;
  for (const std::string& name : names) {
    std::optional<NamedMetric> metric = metric_named(name);
    if (!metric && own_metrics().registered(name)) metric = own_metric(name);
    if (!metric) refuse(name, origin);
    if (std::find(metrics.begin(), metrics.end(), *metric) != metrics.end())
      throw_error<InvalidArgument>("{}: The metric '{}' is listed twice. Remove one of them.", origin,
                                   name);
    metrics.push_back(*metric);
  }
  return metrics;
}

}  // namespace olrank
