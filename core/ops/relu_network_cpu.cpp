#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "core/ops/blas.h"
#include "core/ops/relu_layers.h"
#include "core/ops/relu_network.h"

namespace olrank {
namespace {

using blas::Transpose;

void require_sizes(std::int64_t inputs, std::int64_t width, std::int64_t depth) {
  if (inputs < 1) {
    throw InvalidArgument(fmt::format("A network needs at least one input, not {}.", inputs));
  }
  if (width < 1) {
    throw InvalidArgument(fmt::format("The width of a network must be at least 1, not {}.", width));
  }
  if (depth < 2) {
    throw InvalidArgument(
        fmt::format("The depth of a network counts its layers of weights and must be at least 2, not {}: "
                    "choose the linear network for one layer.",
                    depth));
  }
}

void initialise_symmetric(const NetworkShape& shape, PhiloxKey key, std::span<float> theta) {
  if (shape.depth < 2 || shape.width % 2 != 0) {
    throw InvalidArgument(
        fmt::format("A symmetric network needs a hidden layer of an even width, not depth {} and width {}: "
                    "add 1 to the width or choose the standard parameterisation.",
                    shape.depth, shape.width));
  }
  std::fill(theta.begin(), theta.end(), 0.0F);
  const std::int64_t half = shape.width / 2;
  const auto m = static_cast<double>(shape.width);
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const bool output = l == shape.depth - 1;
    const double deviation = std::sqrt((output ? 2.0 : 4.0) / m);
    const std::int64_t rows = output ? 1 : half;
    const std::int64_t columns = l == 0 ? shape.inputs : half;
    for (std::int64_t r = 0; r < rows; ++r) {
      RngStream draws(key, 0, static_cast<std::uint32_t>(l + 1), static_cast<std::uint32_t>(r));
      float* first = theta.data() + layer.weight + r * layer.columns;
      float* second = first + half * layer.columns + half;  // the lower block of a hidden layer
      if (output) second = first + half;
      if (l == 0) second = first + half * layer.columns;
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto value = static_cast<float>(deviation * draws.normal());
        first[c] = value;
        second[c] = output ? -value : value;
      }
    }
  }
}

void initialise_uniform(const NetworkShape& shape, PhiloxKey key, std::span<float> theta) {
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const double bound = 1.0 / std::sqrt(static_cast<double>(layer.columns));
    for (std::int64_t r = 0; r < layer.rows; ++r) {
      RngStream draws(key, 0, static_cast<std::uint32_t>(l + 1), static_cast<std::uint32_t>(r));
      const auto draw = [&] { return static_cast<float>(bound * (2.0 * draws.uniform() - 1.0)); };
      float* row = theta.data() + layer.weight + r * layer.columns;
      for (std::int64_t c = 0; c < layer.columns; ++c) row[c] = draw();
      if (layer.has_bias()) theta[static_cast<std::size_t>(layer.bias + r)] = draw();
    }
  }
}

double plain(double product) {
  return product;
}
double absolute(double product) {
  return std::fabs(product);
}

/// Σ term(a_k b_k) in double, where the products are exact, so that the two halves of a symmetric network
/// cancel to the bit. Eight running sums, combined in a fixed order.
template <double (*term)(double)>
double sum_of_products(const float* a, const float* b, std::int64_t size) {
  constexpr std::int64_t kLanes = 8;
  double sums[kLanes] = {};
  const std::int64_t whole = size - size % kLanes;
  for (std::int64_t k = 0; k < whole; k += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += term(double{a[k + lane]} * double{b[k + lane]});
    }
  }
  for (std::int64_t k = whole; k < size; ++k) sums[k - whole] += term(double{a[k]} * double{b[k]});
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

}  // namespace

std::int64_t NetworkShape::parameters() const {
  const NetworkLayer last = layer(depth - 1);
  return last.weight + last.rows * last.columns + (biases ? last.rows : 0);
}

std::int64_t NetworkShape::factors() const {
  const NetworkLayer last = layer(depth - 1);
  return last.delta + last.rows;
}

NetworkLayer NetworkShape::layer(std::int64_t index) const {
  assert(index >= 0 && index < depth);
  NetworkLayer layer;
  layer.rows = index == depth - 1 ? 1 : width;
  layer.columns = index == 0 ? inputs : width;
  if (index > 0) {
    const std::int64_t bias = biases ? width : 0;
    layer.weight = width * inputs + bias + (index - 1) * (width * width + bias);
    layer.input = inputs + width + (index - 1) * 2 * width;
  }
  layer.delta = layer.input + layer.columns;
  if (biases) layer.bias = layer.weight + layer.rows * layer.columns;
  return layer;
}

NetworkShape ntk_shape(std::int64_t inputs, std::int64_t width, std::int64_t depth) {
  require_sizes(inputs, width, depth);
  if (width % 2 != 0) {
    throw InvalidArgument(
        fmt::format("The ntk parameterisation starts from two equal halves, so its width must be even, not "
                    "{}: choose {} or {}, or the standard parameterisation.",
                    width, width - 1, width + 1));
  }
  return {inputs, width, depth, false, std::sqrt(static_cast<double>(width))};
}

NetworkShape standard_shape(std::int64_t inputs, std::int64_t width, std::int64_t depth) {
  require_sizes(inputs, width, depth);
  return {inputs, width, depth, true, 1.0};
}

NetworkShape linear_shape(std::int64_t inputs) {
  require_sizes(inputs, 1, 2);
  return {inputs, 1, 1, false, 1.0};
}

void initialise(const NetworkShape& shape, Initialisation initialisation, PhiloxKey key,
                std::span<float> theta) {
  assert(static_cast<std::int64_t>(theta.size()) == shape.parameters());
  if (initialisation == Initialisation::kSymmetric) {
    initialise_symmetric(shape, key, theta);
  } else {
    initialise_uniform(shape, key, theta);
  }
}

void forward_hidden(const NetworkShape& shape, const float* theta, const float* features, std::int64_t docs,
                    float* rows, std::int64_t stride) {
  assert(docs <= kDocsPerPass);
  for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    float* units = rows + shape.layer(l + 1).input;
    if (layer.has_bias()) {
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        std::copy_n(theta + layer.bias, layer.rows, units + doc * stride);
      }
    }
    const float* inputs = l == 0 ? features : rows + layer.input;
    blas::gemm(Transpose::kNo, Transpose::kYes, docs, layer.rows, layer.columns, 1.0F, inputs,
               l == 0 ? shape.inputs : stride, theta + layer.weight, layer.columns,
               layer.has_bias() ? 1.0F : 0.0F, units, stride);
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      float* unit = units + doc * stride;
      for (std::int64_t r = 0; r < layer.rows; ++r) unit[r] = unit[r] > 0.0F ? unit[r] : 0.0F;
    }
  }
}

void forward_output(const NetworkShape& shape, const float* theta, const float* features, const float* rows,
                    std::int64_t docs, std::int64_t stride, float* scores, float* magnitudes) {
  const NetworkLayer layer = shape.layer(shape.depth - 1);
  const float* weight = theta + layer.weight;
  const double bias = layer.has_bias() ? double{theta[layer.bias]} : 0.0;
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const float* inputs =
        shape.depth == 1 ? features + doc * shape.inputs : rows + doc * stride + layer.input;
    const double sum = sum_of_products<plain>(weight, inputs, layer.columns) + bias;
    scores[doc] = static_cast<float>(shape.output_scale * sum);
    if (magnitudes == nullptr) continue;
    const double magnitude = sum_of_products<absolute>(weight, inputs, layer.columns) + std::fabs(bias);
    magnitudes[doc] = static_cast<float>(shape.output_scale * magnitude);
  }
}

void backward_deltas(const NetworkShape& shape, const float* theta, const float* output,
                     std::int64_t output_stride, std::int64_t docs, float* rows, std::int64_t stride) {
  const auto scale = static_cast<float>(shape.output_scale);
  const NetworkLayer last = shape.layer(shape.depth - 1);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    rows[doc * stride + last.delta] = scale * output[doc * output_stride];
  }
  for (std::int64_t l = shape.depth - 2; l >= 0; --l) {
    const NetworkLayer above = shape.layer(l + 1);
    const NetworkLayer layer = shape.layer(l);
    float* delta = rows + layer.delta;
    if (above.rows == 1) {
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        const float factor = rows[doc * stride + above.delta];
        for (std::int64_t r = 0; r < layer.rows; ++r) {
          delta[doc * stride + r] = factor * theta[above.weight + r];
        }
      }
    } else {
      blas::gemm(Transpose::kNo, Transpose::kNo, docs, layer.rows, above.rows, 1.0F, rows + above.delta,
                 stride, theta + above.weight, above.columns, 0.0F, delta, stride);
    }
    for (std::int64_t doc = 0; doc < docs; ++doc) {
      const float* unit = rows + doc * stride + above.input;
      for (std::int64_t r = 0; r < layer.rows; ++r) {
        delta[doc * stride + r] = unit[r] > 0.0F ? delta[doc * stride + r] : 0.0F;
      }
    }
  }
}

void score_docs(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                FeatureMatrix docs, std::span<float> scores, std::span<float> magnitudes) {
  assert(docs.features == shape.inputs && static_cast<std::int64_t>(scores.size()) == docs.docs);
  assert(static_cast<std::int64_t>(theta.size()) == shape.parameters());
  assert(magnitudes.empty() || magnitudes.size() == scores.size());
  const std::int64_t stride = shape.factors();
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto rows = scratch.take<float>(static_cast<std::size_t>(kDocsPerPass * stride));
    const float* features = docs.values + begin * docs.features;
    forward_hidden(shape, theta.data(), features, end - begin, rows.data(), stride);
    forward_output(shape, theta.data(), features, rows.data(), end - begin, stride, scores.data() + begin,
                   magnitudes.empty() ? nullptr : magnitudes.data() + begin);
  });
}

}  // namespace olrank
