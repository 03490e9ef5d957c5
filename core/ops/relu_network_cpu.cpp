
#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/ops/relu_layers.h"
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

}  // namespace olrank
