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
    {"offline-ndcg", "Offline NDCG@{}", "Quality of the model as it stands, on queries never shown."},
    {"online-ndcg", "Online NDCG@{}", "Mean quality of all lists shown so far."},
    {"online-cndcg", "Online discounted NDCG@{}", "Quality of the shown lists, discounted and summed."},
    {"regret", "Regret", "Mis-ordered pairs of the whole lists, summed over rounds."},
    {"certain-share", "Certain share of the top {}",
     "Share of the shown pairs whose order was certain, since the evaluation before."},
    {"blocks", "Blocks of a list", "Number of blocks, mean since the evaluation before."},
    {"block-size-1", "Block size at rank 1", "Documents in the block at rank 1; 1 leaves nothing open."},
    {"block-size-5", "Block size at rank 5", "Documents in the block at rank 5; 1 leaves nothing open."},
    {"block-size-10", "Block size at rank 10", "Documents in the block at rank 10; 1 leaves nothing open."},
    {"cosine", "Cosine to the offline model", "Likeness to a model trained on all labels."},
    {"width-ratio", "Width over exact width",
     "Median ratio of a pair's width to that of the full covariance; above 1 is too careful, below 1 too "
     "sure."},
    {"width-ratio-p10", "Width over exact width, 10th percentile", "The narrow end of the ratios."},
    {"width-ratio-p90", "Width over exact width, 90th percentile", "The wide end of the ratios."},
    {"false-certain", "False certainty",
     "Share of the certain orders among shown documents of different grades that the grades contradict, "
     "since the evaluation before."},
    {"decisions-differ", "Decisions that exact widths turn",
     "Share of the shown pairs that the full covariance would judge otherwise, certain or not, at the same "
     "α."},
    {"milliseconds", "Milliseconds a round",
     "Time of a round since the evaluation before, without evaluation."},
}};

const Wording& wording_of(Measure measure) {
  return kWordings[static_cast<std::size_t>(measure)];
}

}  // namespace

MeasureValues::MeasureValues() {
  values_.fill(std::nan(""));
}

std::string title_of(Measure measure, std::int64_t cutoff) {
  return fmt::format(fmt::runtime(wording_of(measure).title), cutoff);
}

std::string slug_of(Measure measure) {
  return wording_of(measure).slug;
}

std::string explanation_of(Measure measure, std::int64_t cutoff) {
  return fmt::format(fmt::runtime(wording_of(measure).explanation), cutoff);
}

}  // namespace olrank
