#include "models/linear/linear_belief.h"

#include <cassert>

namespace olrank {

std::int64_t padded_features(std::int64_t features) {
  return (features + FoldedPairs::kPadding - 1) / FoldedPairs::kPadding * FoldedPairs::kPadding;
}

double ridge_weight(LossForm form, double lambda, std::int64_t observed) {
  return form == LossForm::kSum ? lambda : 2.0 * lambda * static_cast<double>(observed);
}

namespace {

constexpr std::int64_t kLanes = 16;

float sum_of_lanes(float* sums) {
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

/// θ·x in sixteen running sums, combined in a fixed order: wide enough for any vector unit, the same bits
/// on all of them.
float dot(const float* theta, const float* doc, std::int64_t features) {
  float sums[kLanes] = {};
  const std::int64_t whole = features - features % kLanes;
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += theta[k + lane] * doc[k + lane];
  }
  for (std::int64_t k = whole; k < features; ++k) sums[k - whole] += theta[k] * doc[k];
  return sum_of_lanes(sums);
}

/// A sparse row gives the bits of the dense one: zeros change no sum.
float dot(const float* theta, SparseRow doc) {
  float sums[kLanes] = {};
  for (std::size_t i = 0; i < doc.columns.size(); ++i) {
    const auto k = static_cast<std::size_t>(doc.columns[i]);
    sums[k % kLanes] += theta[k] * doc.values[i];
  }
  return sum_of_lanes(sums);
}

constexpr std::int64_t kLinearDocsPerBlock = 4096;

}  // namespace

double LinearModel::largest_parameter() const {
  return largest_finite_gain() / static_cast<double>(features_);
}

void LinearModel::score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                        std::span<float> scores) const {
  assert(docs.features == features_ && std::ssize(scores) == docs.docs);
  const auto body = [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t doc = begin; doc < end; ++doc) {
      scores[doc] = docs.is_sparse() ? dot(theta.data(), docs.sparse_doc(doc))
                                     : dot(theta.data(), docs.values + doc * features_, features_);
    }
  };
  context.for_blocks(docs.docs, kLinearDocsPerBlock, std::ref(body));  // a copy of it would be allocated
}

void LinearModel::add_gradient(ExecutionContext&, std::span<const float>, FeatureMatrix docs,
                               std::span<const double> weights, std::span<double> gradient) const {
  assert(docs.features == features_ && std::ssize(weights) == docs.docs);
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const double weight = weights[doc];
    if (weight == 0.0) continue;
    if (docs.is_sparse()) {
      const SparseRow row = docs.sparse_doc(doc);
      for (std::size_t i = 0; i < row.columns.size(); ++i)
        gradient[row.columns[i]] += weight * row.values[i];
      continue;
    }
    const float* row = docs.values + doc * features_;
    for (std::int64_t k = 0; k < features_; ++k) gradient[k] += weight * row[k];
  }
}

ModelTensors LinearModel::tensors(std::span<const float> theta) const {
  return {{{"linear.weight", {1, features_}, {theta.begin(), theta.end()}}}, {{"architecture", "linear"}}};
}

}  // namespace olrank
