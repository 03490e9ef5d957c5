#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/ops/pair_training.h"
#include "core/ops/tangent_factors.h"

// Small networks, documents and histories for tests, and the slow, obvious formulas they are held against.
namespace olrank {

inline PhiloxKey test_key(std::uint64_t seed) {
  return make_key({.seed = seed, .purpose = Purpose::kProbe});
}

/// Normal numbers.
inline std::vector<float> random_numbers(std::int64_t count, std::uint64_t seed, double deviation = 1.0) {
  RngStream draws(test_key(seed), 1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(deviation * draws.normal());
  return values;
}

inline std::vector<double> random_doubles(std::int64_t count, std::uint64_t seed) {
  const std::vector<float> values = random_numbers(count, seed);
  return {values.begin(), values.end()};
}

/// Parameters of no special structure, biases included, of the size that keeps activations near 1.
inline std::vector<float> random_theta(const NetworkShape& shape, std::uint64_t seed) {
  std::vector<float> theta = random_numbers(shape.parameters(), seed);
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const auto deviation = static_cast<float>(std::sqrt(2.0 / static_cast<double>(layer.columns)));
    for (std::int64_t k = 0; k < layer.rows * layer.columns; ++k) {
      theta[layer.weight + k] *= deviation;
    }
  }
  return theta;
}

inline FeatureMatrix matrix_of(const std::vector<float>& values, std::int64_t features) {
  return {values.data(), std::ssize(values) / features, features};
}

/// f(x; θ) in double, and how near a hidden unit of it comes to its kink.
struct SlowScore {
  double score = 0.0;
  double magnitude = 0.0;  // sum of the output layer's absolute terms
  double nearest_kink = 1e300;
};

/// `inputs` receives those of each layer.
inline SlowScore slow_score(const NetworkShape& shape, const std::vector<double>& theta, const float* x,
                            std::vector<std::vector<double>>* inputs = nullptr) {
  SlowScore result;
  std::vector<double> h(x, x + shape.inputs);
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    if (inputs != nullptr) inputs->push_back(h);
    std::vector<double> z;
    for (std::int64_t r = 0; r < layer.rows; ++r) {
      double sum = layer.has_bias() ? theta[layer.bias + r] : 0.0;
      double magnitude = std::abs(sum);
      for (std::int64_t c = 0; c < layer.columns; ++c) {
        const double term = theta[layer.weight + r * layer.columns + c] * h[c];
        sum += term;
        magnitude += std::abs(term);
      }
      z.push_back(sum);
      if (l == shape.depth - 1) {
        result.score = shape.output_scale * sum;
        result.magnitude = shape.output_scale * magnitude;
      } else {
        result.nearest_kink = std::min(result.nearest_kink, std::abs(sum));
      }
    }
    for (double& value : z) value = std::max(value, 0.0);
    h = z;
  }
  return result;
}

inline SlowScore slow_score(const NetworkShape& shape, const std::vector<float>& theta, const float* x) {
  return slow_score(shape, std::vector<double>(theta.begin(), theta.end()), x);
}

/// g(x) [p] from a row of factors, parameter by parameter.
inline std::vector<double> slow_gradient(const TangentShape& shape, const float* factors) {
  std::vector<double> g(shape.parameters(), 0.0);
  for (const NetworkLayer& layer : shape.layers()) {
    for (std::int64_t r = 0; r < layer.rows; ++r) {
      const double delta{factors[layer.delta + r]};
      for (std::int64_t c = 0; c < layer.columns; ++c) {
        g[layer.weight + r * layer.columns + c] = delta * double{factors[layer.input + c]};
      }
      if (layer.has_bias()) g[layer.bias + r] = delta;
    }
  }
  return g;
}

/// Factors of documents.
inline std::vector<float> factors_of(const NetworkShape& shape, const std::vector<float>& theta,
                                     const std::vector<float>& features) {
  ExecutionContext context;
  const FeatureMatrix docs = matrix_of(features, shape.inputs);
  std::vector<float> factors(docs.docs * shape.factors());
  tangent_factors(context, shape, theta, docs, factors);
  return factors;
}

/// Factors of random documents at random parameters.
inline std::vector<float> random_factors(const NetworkShape& shape, std::int64_t docs, std::uint64_t seed) {
  return factors_of(shape, random_theta(shape, seed), random_numbers(docs * shape.inputs, seed + 1));
}

/// Factors of a shape that no network has: normal numbers, some units inactive, and δ = 1 in plain vectors.
inline std::vector<float> random_factors(const TangentShape& shape, std::int64_t docs, std::uint64_t seed) {
  std::vector<float> factors = random_numbers(docs * shape.factors(), seed);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    for (const NetworkLayer& layer : shape.layers()) {
      float* deltas = factors.data() + doc * shape.factors() + layer.delta;
      if (layer.rows == 1 && !layer.has_bias()) deltas[0] = 1.0F;
      for (std::int64_t unit = 1; unit < layer.rows; unit += 3)
        if ((unit + doc) % 2 == 0) deltas[unit] = 0.0F;
    }
  }
  return factors;
}

/// The gradients of documents, [docs × p].
inline Eigen::MatrixXd slow_gradients(const TangentShape& shape, TangentFactors docs) {
  Eigen::MatrixXd gradients(docs.docs, shape.parameters());
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const std::vector<double> g = slow_gradient(shape, docs.row(shape, doc));
    gradients.row(doc) = Eigen::Map<const Eigen::RowVectorXd>(g.data(), shape.parameters());
  }
  return gradients;
}

/// g(winner) − g(loser), [pairs × p].
inline Eigen::MatrixXd slow_pair_gradients(const TangentShape& shape, TangentFactors pairs) {
  const Eigen::MatrixXd docs = slow_gradients(shape, pairs);
  Eigen::MatrixXd gradients(pairs.docs / 2, shape.parameters());
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    gradients.row(pair) = docs.row(2 * pair) - docs.row(2 * pair + 1);
  }
  return gradients;
}

inline TangentFactors view_of(const TangentShape& shape, const std::vector<float>& factors) {
  return {factors.data(), std::ssize(factors) / shape.factors()};
}

/// Terms between different documents, some with labels outside [0, weight], where noise can put them.
inline std::vector<PairTerm> random_terms(std::int64_t docs, std::int64_t count, std::uint64_t seed = 64) {
  std::vector<PairTerm> terms;
  RngStream draws(test_key(seed), 2);
  for (std::int64_t t = 0; t < count; ++t) {
    const auto first =
        t % 3 == 0 ? 0 : static_cast<std::int32_t>(draws.index(static_cast<std::uint32_t>(docs)));
    const auto second =
        static_cast<std::int32_t>((first + 1 + draws.index(static_cast<std::uint32_t>(docs - 1))) % docs);
    terms.push_back({first, second, 1.0 + draws.index(5), 3.0 * draws.normal()});
  }
  return terms;
}

/// A shape of layers one after another, {rows, columns, whether there is a bias}; one row without a bias is
/// a plain vector.
struct LayerSize {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool bias = false;
};
inline TangentShape shape_of_layers(const std::vector<LayerSize>& sizes) {
  std::vector<NetworkLayer> layers;
  std::int64_t place = 0;
  for (const LayerSize& size : sizes) {
    NetworkLayer layer;
    layer.rows = size.rows;
    layer.columns = size.columns;
    layer.weight = place;
    if (size.bias) layer.bias = place + size.rows * size.columns;
    layers.push_back(layer);
    place += size.rows * (size.columns + (size.bias ? 1 : 0));
  }
  return TangentShape(std::move(layers));
}

/// The shapes that tests go through: depths 1 to 4, with and without biases, odd sizes.
inline std::vector<NetworkShape> test_shapes() {
  return {linear_shape(7),    ntk_shape(5, 6, 2),      ntk_shape(13, 34, 2),     ntk_shape(5, 6, 3),
          ntk_shape(9, 8, 4), standard_shape(5, 7, 2), standard_shape(3, 33, 3), standard_shape(6, 5, 4)};
}

}  // namespace olrank
