#include "models/clickgp/click_belief.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/math/host_device.h"

namespace olrank {
namespace {

/// Writes the cosines of inputs x, less their means, into [terms × inputs].
OLRANK_VECTOR_CLONES
void write_cosines(std::int64_t inputs, const float* x, const float* means, double* cosines) {
  constexpr std::int64_t kAtOnce = 8;
  for (std::int64_t first = 0; first < inputs; first += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, inputs - first);
    double of_lane[kAtOnce] = {};
    double of_term[HigherCosines::kTerms][kAtOnce];
    std::copy_n(x + first, count, of_lane);
    for (std::int64_t lane = 0; lane < kAtOnce; ++lane) {
      const HigherCosines higher = higher_cosines(cosine_of_half_turns(of_lane[lane]));
      for (int term = 0; term < HigherCosines::kTerms; ++term) of_term[term][lane] = higher.of[term];
    }
    for (int term = 0; term < HigherCosines::kTerms; ++term) {
      const double factor = ClickFeatures::cosine_factor(term);
      const std::int64_t column = term * inputs + first;
      for (std::int64_t lane = 0; lane < count; ++lane)
        cosines[column + lane] = factor * of_term[term][lane] - double{means[column + lane]};
    }
  }
}

/// sum += sign · row.
OLRANK_VECTOR_CLONES
void add_row(std::int64_t count, const double* row, double sign, double* sum) {
  for (std::int64_t c = 0; c < count; ++c) sum[c] += sign * row[c];
}

}  // namespace

std::shared_ptr<const ClickStart> ClickStart::of_file(std::string file, const std::string& origin,
                                                      ModelCode code) {
  auto scorer = std::make_shared<const ModelScorer>(on_inputs(parse_model(file, origin, code)));
  return std::make_shared<const ClickStart>(ClickStart{{}, std::move(scorer), std::move(file)});
}

double ClickFeatures::cosine_factor(int index) {
  static const double root_half = std::sqrt(0.5);
  return root_half * 2.0 / (index + 2);
}

double ClickFeatures::in_place(InputPair place, const float* scaled) {
  if (place.first < 0) return 0.0;
  const float of_first = scaled[place.first];
  if (place.second >= 0) return centred_product(of_first, scaled[place.second]);
  const int term = -2 - place.second;
  return cosine_factor(term) * higher_cosines(cosine_of_half_turns(of_first)).of[term];
}

bool ClickFeatures::is_start(std::span<const float> weights, std::int64_t inputs) {
  const std::int64_t additive = inputs * (1 + HigherCosines::kTerms);
  const std::int64_t more = std::ssize(weights) - additive;  // weights and two inputs of each product
  if (std::ssize(weights) == inputs) return true;
  if (more < 0 || more % 3 != 0) return false;
  const auto pairs = weights.last(2 * more / 3);
  return std::all_of(pairs.begin(), pairs.end(), [&](float input) {
    return input >= 0.0F && input < static_cast<float>(inputs) && input == std::floor(input);
  });
}

double ClickFeatures::start_score(const float* scaled) const {
  if (start_->scorer) return double{scaled[inputs_]};
  const std::vector<float>& weights = start_->weights;
  const bool has_cosines = std::ssize(weights) > inputs_;
  const std::int64_t first = inputs_ * (1 + HigherCosines::kTerms);
  const std::int64_t products = has_cosines ? (std::ssize(weights) - first) / 3 : 0;
  double score = 0.0;
  for (std::int64_t f = 0; f < inputs_; ++f) {
    score += double{weights[f]} * double{scaled[f]};
    if (!has_cosines) continue;
    const HigherCosines cosines = higher_cosines(cosine_of_half_turns(scaled[f]));
    for (int term = 0; term < HigherCosines::kTerms; ++term)
      score += double{weights[(term + 1) * inputs_ + f]} * cosines.of[term];
  }
  for (std::int64_t p = first; p < first + products; ++p) {
    const auto a = static_cast<std::int64_t>(weights[p + products]);
    const auto b = static_cast<std::int64_t>(weights[p + 2 * products]);
    score += double{weights[p]} * centred_product(scaled[a], scaled[b]);
  }
  return score;
}

void ClickFeatures::expand(std::span<const float> scaled, std::span<const float> means,
                           std::span<double> rows) const {
  const std::int64_t docs = std::ssize(scaled) / seen();
  const std::int64_t width = columns();
  assert(std::ssize(rows) == docs * width && std::ssize(means) >= centred());
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const float* x = scaled.data() + doc * seen();
    double* row = rows.data() + doc * width;
    *row++ = 1.0;
    for (std::int64_t p = 0; products_ && p < std::ssize(*products_); ++p)
      row[centred() + p] = in_place((*products_)[p], x);
    if (start_) row[centred() - 1] = start_score(x) - double{means.back()};
    if (used_ == ClickInputs::kNone) continue;
    for (std::int64_t f = 0; f < inputs_; ++f) row[f] = double{x[f]} - double{means[f]};
    if (!has_cosines()) continue;
    write_cosines(inputs_, x, means.data() + inputs_, row + inputs_);
  }
}

void ClickFeatures::expand_centred(std::span<const float> scaled, std::span<float> means,
                                   std::span<double> rows) const {
  const std::int64_t docs = std::ssize(scaled) / seen();
  const std::int64_t width = columns();
  std::fill(means.begin(), means.end(), 0.0F);
  std::vector<double> sums(width);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const auto row = rows.subspan(doc * width, width);
    expand(scaled.subspan(doc * seen(), seen()), means, row);
    add_row(width, row.data(), 1.0, sums.data());
  }
  for (std::int64_t c = 0; c < centred(); ++c) {
    means[c] = docs == 0 ? 0.0F : static_cast<float>(sums[c + 1] / static_cast<double>(docs));
    sums[c + 1] = double{means[c]};
  }
  for (std::int64_t doc = 0; doc < docs; ++doc)
    add_row(centred(), sums.data() + 1, -1.0, rows.data() + doc * width + 1);
}

void ClickFeatures::see(FeatureMatrix docs, std::vector<float>& scaled) const {
  scale_within_query(docs, scaled);
  if (seen() == inputs_) return;
  Scratch scratch;
  std::vector<double> scores(docs.docs);
  const std::int64_t whole[] = {0, docs.docs};
  start_->scorer->score(scratch, docs, whole, scores);
  scaled.resize(docs.docs * seen());
  for (std::int64_t doc = docs.docs - 1; doc >= 0; --doc) {
    std::copy_backward(scaled.begin() + doc * inputs_, scaled.begin() + (doc + 1) * inputs_,
                       scaled.begin() + doc * seen() + inputs_);
    scaled[doc * seen() + inputs_] = static_cast<float>(scores[doc]);
  }
}

void scale_within_query(FeatureMatrix docs, std::vector<float>& scaled) {
  FittedNormaliser normaliser;
  normaliser.kind = Normalisation::kQueryMinmax;
  normaliser.features = docs.features;
  scaled.resize(docs.docs * docs.features);
  normaliser.apply(docs, scaled.data());
}

}  // namespace olrank
