#include "report/measure.h"

#include <fmt/format.h>

namespace olrank {
namespace {

struct Wording {
  const char* slug;
  const char* title;        // {} is the cutoff
  const char* explanation;  // {} is the cutoff
};

constexpr std::array<Wording, static_cast<std::size_t>(Measure::kBlockSize)> kWordings = {{
    {"offline-ndcg", "Offline NDCG@{}", "NDCG@{} of the current model on held-out queries."},
    {"online-ndcg", "Online NDCG@{}", "Mean NDCG@{} of all lists shown so far."},
    {"online-cndcg", "Online discounted NDCG@{}",
     "Discounted sum of the NDCG@{} of all lists shown so far."},
    {"regret", "Regret", "Misordered pairs in the full lists, summed over rounds."},
    {"examined-regret", "Regret on examined documents",
     "Misordered pairs among the documents that the user examined, summed over rounds."},
    {"certain-share", "Certain share of the top {}",
     "Share of shown pairs whose order was certain, since the previous evaluation."},
    {"blocks", "Blocks per list", "Mean number of blocks since the previous evaluation."},
    {"cosine", "Cosine to the offline model", "Cosine similarity to a model trained on all labels."},
    {"width-ratio", "Width relative to exact width",
     "Median ratio of a pair's width to its width under the full covariance; above 1 is too cautious, "
     "below 1 too confident."},
    {"width-ratio-p10", "Width relative to exact width, 10th percentile",
     "10th percentile of the width ratios."},
    {"width-ratio-p90", "Width relative to exact width, 90th percentile",
     "90th percentile of the width ratios."},
    {"false-certain", "False certainty",
     "Share of certain orders that contradict the grades, among shown documents with different grades, "
     "since the previous evaluation."},
    {"decisions-differ", "Decisions changed by exact widths",
     "Share of shown pairs, certain or not, that the full covariance would decide differently at the same "
     "α."},
    {"milliseconds", "Milliseconds per round",
     "Time to rank and learn per round, since the previous evaluation."},
    {"random-offline-ndcg", "Offline NDCG@{} of a random order",
     "Expected NDCG@{} of random orders of the held-out documents."},
    {"random-online-ndcg", "Online NDCG@{} of random lists",
     "Expected mean NDCG@{} of random lists for the same queries."},
    {"random-online-cndcg", "Online discounted NDCG@{} of random lists",
     "Expected discounted sum of the NDCG@{} of random lists for the same queries."},
    {"random-regret", "Regret of random lists",
     "Expected misordered pairs of random lists for the same queries."},
    {"unfairness", "Unfairness",
     "Exposure of group A so far, minus β times that of group B: 0 is fair, and within ±ε still is. Of "
     "more groups, that of the two farthest apart."},
    {"fair-share", "Share of fair rounds", "Rounds so far after which the unfairness was within ±ε."},
    {"violations", "Violated certain orders per list",
     "Certain orders that a list puts the other way round, mean since the previous evaluation."},
    {"unrealisable", "Rounds without a fair list",
     "Rounds so far in which no list of the query's documents was within ±ε."},
}};

// With the rank in place of the cutoff.
constexpr Wording kBlockWording = {"block-size-{}", "Block size at rank {}",
                                   "Documents in the block that contains rank {}."};

const Wording& wording_of(Measure measure) {
  return measure < Measure::kBlockSize ? kWordings[static_cast<std::size_t>(measure)] : kBlockWording;
}

/// Returns the number that stands for {} in the wording.
std::int64_t number_in_wording(Measure measure, std::int64_t cutoff) {
  if (measure < Measure::kBlockSize) return cutoff;
  return ListCertainty::kBlockRanks[static_cast<std::size_t>(measure) -
                                    static_cast<std::size_t>(Measure::kBlockSize)];
}

// An added measure is a number with these parts, the cutoff below, so that they sort like metrics.
constexpr int kKindBit = 40;
constexpr int kRandomBit = 60;

std::size_t number_of(const NamedMetric& metric) {
  const auto kind = static_cast<std::size_t>(metric.kind) + 1;
  return kind << kKindBit | static_cast<std::size_t>(metric.cutoff);
}

bool is_added(Measure measure) {
  return static_cast<std::size_t>(measure) >= kMeasures;
}

bool is_random(Measure measure) {
  return static_cast<std::size_t>(measure) >> kRandomBit != 0;
}

/// Names it for file names: "ndcg-at-5".
std::string slug_of(const NamedMetric& metric) {
  std::string slug;
  for (const char c : metric.name()) {
    if (c == '@') {
      slug += "-at-";
    } else {
      slug += c == '_' ? '-' : c;
    }
  }
  return slug;
}

std::string meaning_of(const NamedMetric& metric) {
  switch (metric.kind) {
    case MetricKind::kMap:
      return "Mean average precision";
    case MetricKind::kMrr:
      return "Mean reciprocal rank of the first relevant document";
    case MetricKind::kErr:
      return fmt::format("Expected reciprocal rank of the first {} documents", metric.cutoff);
    case MetricKind::kArp:
      return "Mean position of the relevant documents, weighted by grade (smaller is better),";
    case MetricKind::kPairAccuracy:
      return "Share of the pairs of documents with different grades that are in the right order,";
    case MetricKind::kPrecision:
      return fmt::format("Share of relevant documents among the first {}", metric.cutoff);
    case MetricKind::kNdcg:
    case MetricKind::kDcg:
    case MetricKind::kOwn:
      break;
  }
  return metric.title();
}

}  // namespace

Measure measure_of(const NamedMetric& metric) {
  return static_cast<Measure>(number_of(metric));
}

Measure random_measure_of(const NamedMetric& metric) {
  return static_cast<Measure>(number_of(metric) | std::size_t{1} << kRandomBit);
}

std::optional<NamedMetric> metric_of(Measure measure) {
  if (!is_added(measure)) return std::nullopt;
  const auto number = static_cast<std::size_t>(measure) & ((std::size_t{1} << kRandomBit) - 1);
  return NamedMetric{static_cast<MetricKind>((number >> kKindBit) - 1),
                     static_cast<std::int64_t>(number & ((std::size_t{1} << kKindBit) - 1))};
}

bool is_of_rounds(std::string_view stage) {
  return stage != "eval" && stage != "shadow";
}

MeasureValues::MeasureValues() {
  values_.fill(std::nan(""));
}

double& MeasureValues::operator[](Measure measure) {
  if (is_added(measure)) return added_.try_emplace(measure, std::nan("")).first->second;
  return values_[static_cast<std::size_t>(measure)];
}

double MeasureValues::operator[](Measure measure) const {
  if (!is_added(measure)) return values_[static_cast<std::size_t>(measure)];
  const auto found = added_.find(measure);
  return found == added_.end() ? std::nan("") : found->second;
}

std::vector<Measure> MeasureValues::added() const {
  std::vector<Measure> measures;
  for (const auto& [measure, value] : added_) measures.push_back(measure);
  return measures;
}

std::string title_of(Measure measure, std::int64_t cutoff) {
  if (const auto metric = metric_of(measure))
    return fmt::format("Offline {}{}", metric->title(), is_random(measure) ? " of a random order" : "");
  return fmt::format(fmt::runtime(wording_of(measure).title), number_in_wording(measure, cutoff));
}

std::string slug_of(Measure measure) {
  if (const auto metric = metric_of(measure))
    return fmt::format("{}offline-{}", is_random(measure) ? "random-" : "", slug_of(*metric));
  return fmt::format(fmt::runtime(wording_of(measure).slug), number_in_wording(measure, 0));
}

std::optional<Measure> random_baseline(Measure measure) {
  if (const auto metric = metric_of(measure))
    return is_random(measure) ? std::nullopt : std::optional(random_measure_of(*metric));
  if (measure > Measure::kRegret) return std::nullopt;
  return static_cast<Measure>(static_cast<std::size_t>(Measure::kRandomOfflineNdcg) +
                              static_cast<std::size_t>(measure));
}

std::string explanation_of(Measure measure, std::int64_t cutoff) {
  if (const auto metric = metric_of(measure)) {
    return fmt::format("{} of {} on held-out queries.", meaning_of(*metric),
                       is_random(measure) ? "random orders" : "the current model");
  }
  return fmt::format(fmt::runtime(wording_of(measure).explanation), number_in_wording(measure, cutoff));
}

}  // namespace olrank
