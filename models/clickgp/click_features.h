#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/feature_matrix.h"
#include "core/math/cosine.h"

namespace olrank {

/// How a click model sees the documents of a query: by a constant, their inputs scaled to [0, 1] within the
/// query, and for an additive model √½ (2/k) cos(kπx) of each input, k = 2, 3, 4. All but the constant are
/// centred within the query.
class ClickFeatures {
 public:
  ClickFeatures(std::int64_t inputs, bool additive) : inputs_(inputs), additive_(additive) {}

  std::int64_t inputs() const { return inputs_; }
  bool additive() const { return additive_; }
  /// Of a row of features, the constant included.
  std::int64_t columns() const { return 1 + centred(); }
  /// Of a row of means.
  std::int64_t centred() const { return inputs_ * (additive_ ? 1 + HigherCosines::kTerms : 1); }

  /// The factor of term `index` (from 0), cos((index + 2) π x).
  static double cosine_factor(int index);

  /// The feature rows [docs × columns()] of scaled inputs, less `means` [centred()].
  void expand(std::span<const float> scaled, std::span<const float> means, std::span<double> rows) const;
  /// The means of the centred features.
  void find_means(std::span<const float> scaled, std::span<float> means) const;

 private:
  std::int64_t inputs_;
  bool additive_;
};

/// A query's inputs scaled to [0, 1] feature by feature; those that do not differ become 0.
void scale_within_query(FeatureMatrix docs, std::vector<float>& scaled);

}  // namespace olrank
