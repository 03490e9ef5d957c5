#include <cassert>
#include <cmath>

#include "core/math/host_device.h"
#include "core/ops/blas.h"
#include "core/ops/relu_network.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

void require_sizes(std::int64_t inputs, std::int64_t width, std::int64_t depth) {
  if (inputs < 1) {
    throw_error<InvalidArgument>("A network needs at least one input, not {}.", inputs);
  }
  if (width < 1) {
    throw_error<InvalidArgument>("The width of a network must be at least 1, not {}.", width);
  }
  if (depth < 2) {
    throw_error<InvalidArgument>(
        "The depth of a network, its number of weight layers, must be at least 2, not {}: choose the "
        "linear network for one layer.",
        depth);
  }
}

void initialise_symmetric(const NetworkShape& shape, PhiloxKey key, std::span<float> theta) {
  if (shape.depth < 2 || shape.width % 2 != 0) {
    throw_error<InvalidArgument>(
        "A symmetric network starts with a hidden layer of two equal halves, so its width must be even, "
        "not {}: choose {} or {}, or initialisation = \"usual\".",
        shape.width, shape.width - 1, shape.width + 1);
  }
  std::fill(theta.begin(), theta.end(), 0.0F);
  const std::int64_t half = shape.width / 2;
  const auto m = static_cast<double>(shape.width);
  for (std::int64_t l = 0; l < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const bool output = l == shape.depth - 1;
    const std::int64_t rows = output ? 1 : half;
    const std::int64_t columns = l == 0 ? shape.inputs : half;
    // With biases, uniform by the number of inputs of a unit.
    const double deviation = std::sqrt((output ? 2.0 : 4.0) / m);
    const double bound = 1.0 / std::sqrt(static_cast<double>(output ? shape.width : columns));
    for (std::int64_t r = 0; r < rows; ++r) {
      RngStream draws(key, 0, static_cast<std::uint32_t>(l + 1), static_cast<std::uint32_t>(r));
      const auto draw = [&] {
        return static_cast<float>(shape.biases ? bound * (2.0 * draws.uniform() - 1.0)
                                               : deviation * draws.normal());
      };
      float* first = theta.data() + layer.weight + r * layer.columns;
      float* second = first + half * layer.columns + half;  // the lower block of a hidden layer
      if (output) second = first + half;
      if (l == 0) second = first + half * layer.columns;
      for (std::int64_t c = 0; c < columns; ++c) {
        first[c] = draw();
        second[c] = output ? -first[c] : first[c];
      }
      if (layer.has_bias() && !output) {
        float* bias = theta.data() + layer.bias + r;
        bias[0] = bias[half] = draw();
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
      if (layer.has_bias()) theta[layer.bias + r] = draw();
    }
  }
}

using blas::Transpose;

constexpr std::int64_t kFloatsPerLine = 16;

OLRANK_ALWAYS_INLINE double plain(double product) {
  return product;
}
OLRANK_ALWAYS_INLINE double absolute(double product) {
  return std::fabs(product);
}

/// Σ term(a_k b_k) in double, where the products are exact. Eight running sums, combined in a fixed order.
template <double (*term)(double)>
OLRANK_ALWAYS_INLINE double sum_of_products(const float* a, const float* b, std::int64_t size) {
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

OLRANK_VECTOR_CLONES
void rectify(float* units, std::int64_t stride, std::int64_t docs, std::int64_t size) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    float* unit = units + doc * stride;
    for (std::int64_t r = 0; r < size; ++r) unit[r] = unit[r] > 0.0F ? unit[r] : 0.0F;
  }
}

/// The documents' inputs to the last layer, and the layer's single row of weights.
struct OutputLayer {
  const float* inputs;
  std::int64_t stride;
  const float* weight;
  std::int64_t columns;
};

OLRANK_VECTOR_CLONES
void output_sums(const OutputLayer& layer, std::int64_t docs, double scale, double bias, float* scores) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const double sum =
        sum_of_products<plain>(layer.weight, layer.inputs + doc * layer.stride, layer.columns);
    scores[doc] = static_cast<float>(scale * (sum + bias));
  }
}

OLRANK_VECTOR_CLONES
void output_magnitudes(const OutputLayer& layer, std::int64_t docs, double scale, double bias,
                       float* magnitudes) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const double sum =
        sum_of_products<absolute>(layer.weight, layer.inputs + doc * layer.stride, layer.columns);
    magnitudes[doc] = static_cast<float>(scale * (sum + bias));
  }
}

/// delta_r = factor · weight_r where unit r is active: the deltas below a layer of one unit.
OLRANK_VECTOR_CLONES
void spread_delta(const float* factor, const float* weight, const float* hidden, std::int64_t hidden_stride,
                  float* delta, std::int64_t delta_stride, std::int64_t docs, std::int64_t units) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const float scale = factor[doc * delta_stride];
    const float* unit = hidden + doc * hidden_stride;
    float* out = delta + doc * delta_stride;
    for (std::int64_t r = 0; r < units; ++r) {
      const float value = scale * weight[r];
      out[r] = unit[r] > 0.0F ? value : 0.0F;
    }
  }
}

OLRANK_VECTOR_CLONES
void silence_dead_units(const float* hidden, std::int64_t hidden_stride, float* delta,
                        std::int64_t delta_stride, std::int64_t docs, std::int64_t units) {
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    const float* unit = hidden + doc * hidden_stride;
    float* out = delta + doc * delta_stride;
    for (std::int64_t r = 0; r < units; ++r) {
      const float value = out[r];
      out[r] = unit[r] > 0.0F ? value : 0.0F;
    }
  }
}

UnitRows take_rows(Scratch& scratch, std::int64_t docs, std::int64_t layer_step, std::int64_t numbers) {
  const std::int64_t stride = (numbers + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
  return {scratch.take<float>(docs * stride).data(), layer_step, stride};
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
    throw_error<InvalidArgument>(
        "The ntk parameterisation starts with two equal halves, so its width must be even, not {}: choose "
        "{} or {}, or a standard network of the usual initialisation.",
        width, width - 1, width + 1);
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
  assert(std::ssize(theta) == shape.parameters());
  if (initialisation == Initialisation::kSymmetric) {
    initialise_symmetric(shape, key, theta);
  } else {
    initialise_uniform(shape, key, theta);
  }
}

void score_docs(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                FeatureMatrix docs, std::span<float> scores, std::span<float> magnitudes) {
  assert(docs.features == shape.inputs && std::ssize(scores) == docs.docs);
  assert(std::ssize(theta) == shape.parameters());
  assert(magnitudes.empty() || magnitudes.size() == scores.size());
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const UnitRows hidden = take_hidden(scratch, shape, end - begin);
    const float* features = docs.values + begin * docs.features;
    forward_hidden(shape, theta.data(), features, end - begin, hidden);
    forward_output(shape, theta.data(), features, hidden, end - begin, scores.data() + begin,
                   magnitudes.empty() ? nullptr : magnitudes.data() + begin);
  });
}

UnitRows hidden_of_factors(const NetworkShape& shape, float* factors) {
  return {factors + shape.inputs + shape.width, 2 * shape.width, shape.factors()};
}

UnitRows deltas_of_factors(const NetworkShape& shape, float* factors) {
  return {factors + shape.inputs, 2 * shape.width, shape.factors()};
}

UnitRows take_hidden(Scratch& scratch, const NetworkShape& shape, std::int64_t docs) {
  return take_rows(scratch, docs, shape.width, (shape.depth - 1) * shape.width);
}

UnitRows take_deltas(Scratch& scratch, const NetworkShape& shape, std::int64_t docs) {
  return take_rows(scratch, docs, shape.width, (shape.depth - 1) * shape.width + 1);
}

void forward_hidden(const NetworkShape& shape, const float* theta, const float* features, std::int64_t docs,
                    UnitRows hidden) {
  assert(docs <= kDocsPerPass);
  for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    float* units = hidden.layer(l);
    if (layer.has_bias()) {
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        std::copy_n(theta + layer.bias, layer.rows, units + doc * hidden.stride);
      }
    }
    blas::gemm(Transpose::kNo, Transpose::kYes, docs, layer.rows, layer.columns, 1.0F,
               l == 0 ? features : hidden.layer(l - 1), l == 0 ? shape.inputs : hidden.stride,
               theta + layer.weight, layer.columns, layer.has_bias() ? 1.0F : 0.0F, units, hidden.stride);
    rectify(units, hidden.stride, docs, layer.rows);
  }
}

void forward_output(const NetworkShape& shape, const float* theta, const float* features, UnitRows hidden,
                    std::int64_t docs, float* scores, float* magnitudes) {
  const std::int64_t last = shape.depth - 1;
  const NetworkLayer layer = shape.layer(last);
  const OutputLayer output{last == 0 ? features : hidden.layer(last - 1),
                           last == 0 ? shape.inputs : hidden.stride, theta + layer.weight, layer.columns};
  const double bias = layer.has_bias() ? double{theta[layer.bias]} : 0.0;
  if (halves_cancel(shape, theta)) {
    std::fill_n(scores, docs, 0.0F);
  } else {
    output_sums(output, docs, shape.output_scale, bias, scores);
  }
  if (magnitudes != nullptr)
    output_magnitudes(output, docs, shape.output_scale, std::fabs(bias), magnitudes);
}

void backward_deltas(const NetworkShape& shape, const float* theta, const float* output,
                     std::int64_t output_stride, std::int64_t docs, UnitRows hidden, UnitRows deltas) {
  const auto scale = static_cast<float>(shape.output_scale);
  float* of_output = deltas.layer(shape.depth - 1);
  for (std::int64_t doc = 0; doc < docs; ++doc) {
    of_output[doc * deltas.stride] = scale * output[doc * output_stride];
  }
  for (std::int64_t l = shape.depth - 2; l >= 0; --l) {
    const NetworkLayer above = shape.layer(l + 1);
    float* delta = deltas.layer(l);
    if (above.rows == 1) {
      spread_delta(deltas.layer(l + 1), theta + above.weight, hidden.layer(l), hidden.stride, delta,
                   deltas.stride, docs, shape.width);
      continue;
    }
    blas::gemm(Transpose::kNo, Transpose::kNo, docs, shape.width, above.rows, 1.0F, deltas.layer(l + 1),
               deltas.stride, theta + above.weight, above.columns, 0.0F, delta, deltas.stride);
    silence_dead_units(hidden.layer(l), hidden.stride, delta, deltas.stride, docs, shape.width);
  }
}

}  // namespace olrank
