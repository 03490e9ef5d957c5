#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/feature_matrix.h"
#include "core/math/cosine.h"

namespace olrank {

/// A unit of a network of products: 4 (x_first − its centre)(x_second − its centre).
struct ClickProduct {
  std::int32_t first = -1;  // an input; −1 where the unit is free and has the value 0
  std::int32_t second = -1;
  double first_centre = 0.0;
  double second_centre = 0.0;

  bool operator==(const ClickProduct&) const = default;
  bool is_used() const { return first >= 0; }
  double at(const float* x) const { return 4.0 * (x[first] - first_centre) * (x[second] - second_centre); }
};

/// How a click model sees the documents of a query: by a constant, their inputs scaled to [0, 1] within the
/// query, for an additive model √½ (2/k) cos(kπx) of each input, k = 2, 3, 4, and for a network the units
/// that products_of_inputs() finds. Inputs and cosines are centred within the query.
class ClickFeatures {
 public:
  ClickFeatures(std::int64_t inputs, bool additive, std::int64_t units = 0)
      : inputs_(inputs), additive_(additive), products_(units) {}

  std::int64_t inputs() const { return inputs_; }
  bool additive() const { return additive_; }
  /// Of a row of features, the constant included.
  std::int64_t columns() const { return 1 + centred() + std::ssize(products_); }
  /// Of a row of means.
  std::int64_t centred() const { return inputs_ * (additive_ ? 1 + HigherCosines::kTerms : 1); }

  std::span<const ClickProduct> products() const { return products_; }
  /// As many units as there were.
  void set_products(std::span<const ClickProduct> products);

  /// The factor of term `index` (from 0), cos((index + 2) π x).
  static double cosine_factor(int index);

  /// The feature rows [docs × columns()] of scaled inputs, less `means` [centred()].
  void expand(std::span<const float> scaled, std::span<const float> means, std::span<double> rows) const;
  /// The means of the centred features.
  void find_means(std::span<const float> scaled, std::span<float> means) const;

 private:
  std::int64_t inputs_;
  bool additive_;
  std::vector<ClickProduct> products_;
};

/// A query's inputs scaled to [0, 1] feature by feature; those that do not differ become 0.
void scale_within_query(FeatureMatrix docs, std::vector<float>& scaled);

}  // namespace olrank
