#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/data/dataset.h"
#include "core/math/portable_exp.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// One layer of weights: its offsets in θ, and those of its tangent factors in a document's row.
struct NetworkLayer {
  std::int64_t rows = 0;     // units of this layer
  std::int64_t columns = 0;  // inputs of this layer
  std::int64_t weight = 0;   // offset in θ of W_l, row-major [rows × columns]
  std::int64_t bias = -1;    // offset in θ of its bias [rows]; −1 where there is none
  std::int64_t input = 0;    // offset in a row of tangent factors of h_{l−1} [columns]
  std::int64_t delta = 0;    // offset in a row of tangent factors of δ_l [rows]

  OLRANK_HOST_DEVICE bool has_bias() const { return bias >= 0; }
  /// Parameters of one unit: its weights and its bias.
  OLRANK_HOST_DEVICE std::int64_t unit_parameters() const { return columns + (has_bias() ? 1 : 0); }
};

/// f(x; θ) = output_scale · (W_L h_{L−1} + b_L), h_l = φ(W_l h_{l−1} + b_l), h_0 = x, φ = ReLU. θ is flat:
/// layer 1's weight, then its bias where there is one, then layer 2. L = 1 is the linear ranker.
struct NetworkShape {
  std::int64_t inputs = 1;    // d
  std::int64_t width = 1;     // m
  std::int64_t depth = 2;     // L, layers of weights
  bool biases = false;        // the b_l
  double output_scale = 1.0;  // √m in the ntk parameterisation

  /// p.
  std::int64_t parameters() const;
  /// Σ_l (|δ_l| + |h_{l−1}|): numbers in one row of tangent factors.
  std::int64_t factors() const;
  /// Layer `index`, from 0.
  NetworkLayer layer(std::int64_t index) const;

  friend bool operator==(const NetworkShape&, const NetworkShape&) = default;
};

/// The papers' ranker: no biases, f scaled by √m. Throws InvalidArgument for sizes without a network
/// and for an odd width, which has no symmetric initialisation.
NetworkShape ntk_shape(std::int64_t inputs, std::int64_t width, std::int64_t depth);
/// The usual parameterisation: biases and no scale.
NetworkShape standard_shape(std::int64_t inputs, std::int64_t width, std::int64_t depth);
/// f(x) = θ·x.
NetworkShape linear_shape(std::int64_t inputs);

/// kSymmetric: hidden layers consist of two equal halves with opposite output weights, so that
/// f(x; θ₀) = 0. kUniform: LibTorch's default for linear modules, weights and biases uniform in
/// ±1/√(inputs of the layer).
enum class Initialisation { kSymmetric, kUniform };

/// θ₀. Symmetric (Jia and Wang, "Learning Neural Ranking Models Online from Implicit User Feedback", WWW
/// 2022): W_1 = (W; W), hidden layers block diagonal (W,0; 0,W), entries N(0, 4/m), and W_L = (w, −w),
/// entries N(0, 2/m). With biases, which the papers' network does not have, weights and hidden biases are
/// uniform as of kUniform, equal in both halves, and the output's bias is 0. Row r of layer l (from 1)
/// draws its numbers in order from the stream at (round 0, document l, position r); a row's bias follows
/// its weights.
void initialise(const NetworkShape& shape, Initialisation initialisation, PhiloxKey key,
                std::span<float> theta);

/// scores[i] = f(x_i; θ). `magnitudes`, unless empty, gets the sum of the absolute terms behind each
/// score: rounding of a symmetric network stays below kScoreRounding (core/math/pair_loss.h) times it.
void score_docs(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                FeatureMatrix docs, std::span<float> scores, std::span<float> magnitudes = {});

/// Whether θ makes two halves of equal hidden units with opposite output weights, as symmetric
/// initialisation does: then f(x; θ) = 0 for every x. A matrix product sums the units of the two halves in
/// different orders, so that computed scores would be rounding, and not 0. Any training tells the output
/// weights apart, which are looked at first.
template <class Number>
bool halves_cancel(const NetworkShape& shape, const Number* theta) {
  if (shape.depth < 2 || shape.width % 2 != 0) return false;
  const std::int64_t half = shape.width / 2;
  const NetworkLayer last = shape.layer(shape.depth - 1);
  const Number* output = theta + last.weight;
  if (last.has_bias() && theta[last.bias] != 0) return false;
  const auto opposite = [](Number a, Number b) { return a == -b; };
  if (!std::equal(output, output + half, output + half, opposite)) return false;
  for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    if (layer.has_bias()) {
      const Number* bias = theta + layer.bias;
      if (!std::equal(bias, bias + half, bias + half)) return false;
    }
    // Where the inputs are units, those of the other half come first for the second half.
    const std::int64_t turn = l == 0 ? 0 : half;
    for (std::int64_t r = 0; r < half; ++r) {
      const Number* row = theta + layer.weight + r * layer.columns;
      const Number* twin = row + half * layer.columns;
      const std::int64_t rest = layer.columns - turn;
      if (!std::equal(row, row + rest, twin + turn)) return false;
      if (!std::equal(row + rest, row + layer.columns, twin)) return false;
    }
  }
  return true;
}

}  // namespace olrank

// Passes of one block of documents through the layers, on the calling thread. Scores, tangent factors and
// training share them, so that they agree to the bit.
namespace olrank {

/// Documents per block of every pass. Changing it changes the bits of scores.
constexpr std::int64_t kDocsPerPass = 256;
/// Longest float32 sum over documents in a gradient; sums of such sums are in double.
constexpr std::int64_t kMostDocsPerFloatSum = 512;

/// Values of units, layer by layer, for a block of documents: the hidden units h_1 … h_{L−1}, or the deltas
/// δ_1 … δ_L. They are parts of rows of tangent factors, or rows in scratch memory.
struct UnitRows {
  float* first = nullptr;       // the first layer's, of the first document
  std::int64_t layer_step = 0;  // from one layer to the next
  std::int64_t stride = 0;      // from one document to the next

  float* layer(std::int64_t number) const { return first + number * layer_step; }
  UnitRows from(std::int64_t doc) const { return {first + doc * stride, layer_step, stride}; }
};

/// Views into rows of tangent factors.
UnitRows hidden_of_factors(const NetworkShape& shape, float* factors);
UnitRows deltas_of_factors(const NetworkShape& shape, float* factors);

/// Rows in scratch memory, padded to whole cache lines, valid as long as the enclosing frame.
UnitRows take_hidden(Scratch& scratch, const NetworkShape& shape, std::int64_t docs);
UnitRows take_deltas(Scratch& scratch, const NetworkShape& shape, std::int64_t docs);

/// The hidden units of `docs` ≤ kDocsPerPass documents.
void forward_hidden(const NetworkShape& shape, const float* theta, const float* features, std::int64_t docs,
                    UnitRows hidden);

/// Scores from them; `magnitudes` may be null.
void forward_output(const NetworkShape& shape, const float* theta, const float* features, UnitRows hidden,
                    std::int64_t docs, float* scores, float* magnitudes);

/// Deltas of all layers, from the output's derivative `output` of each document (one number for all where
/// `output_stride` is 0), times output_scale. ReLU's derivative at 0 is 0.
void backward_deltas(const NetworkShape& shape, const float* theta, const float* output,
                     std::int64_t output_stride, std::int64_t docs, UnitRows hidden, UnitRows deltas);

}  // namespace olrank
