#include "report/measure.h"

#include <fmt/format.h>

#include <cmath>

namespace olrank {
namespace {

struct Wording {
  const char* slug;
  const char* title;        // {} is the cutoff
  const char* explanation;  // {} is the cutoff
};

constexpr std::array<Wording, kMeasures> kWordings = {{
    {"offline-ndcg", "Offline NDCG@{}", "NDCG@{} of the current model on held-out queries."},
    {"online-ndcg", "Online NDCG@{}", "Mean NDCG@{} of all lists shown so far."},
    {"online-cndcg", "Online discounted NDCG@{}",
     "Discounted sum of the NDCG@{} of all lists shown so far."},
    {"regret", "Regret", "Misordered pairs in the full lists, summed over rounds."},
    {"certain-share", "Certain share of the top {}",
     "Share of shown pairs whose order was certain, since the previous evaluation."},
    {"blocks", "Blocks per list", "Mean number of blocks since the previous evaluation."},
    {"block-size-1", "Block size at rank 1", "Documents in the block that contains rank 1."},
    {"block-size-5", "Block size at rank 5", "Documents in the block that contains rank 5."},
    {"block-size-10", "Block size at rank 10", "Documents in the block that contains rank 10."},
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
}};

const Wording& wording_of(Measure measure) {
  return kWordings[static_cast<std::size_t>(measure)];
}

}  // namespace

bool is_of_rounds(std::string_view stage) {
  return stage != "eval" && stage != "shadow";
}

MeasureValues::MeasureValues() {
  values_.fill(std::nan(""));
}

std::string title_of(Measure measure, std::int64_t cutoff) {
  return fmt::format(fmt::runtime(wording_of(measure).title), cutoff);
}

std::string slug_of(Measure measure) {
  return wording_of(measure).slug;
}

std::optional<Measure> random_baseline(Measure measure) {
  switch (measure) {
    case Measure::kOfflineNdcg:
      return Measure::kRandomOfflineNdcg;
    case Measure::kOnlineNdcg:
      return Measure::kRandomOnlineNdcg;
    case Measure::kDiscountedNdcg:
      return Measure::kRandomDiscountedNdcg;
    case Measure::kRegret:
      return Measure::kRandomRegret;
    default:
      return std::nullopt;
  }
}

std::string explanation_of(Measure measure, std::int64_t cutoff) {
  return fmt::format(fmt::runtime(wording_of(measure).explanation), cutoff);
}

}  // namespace olrank
