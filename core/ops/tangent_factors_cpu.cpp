#include <algorithm>
#include <cassert>
#include <utility>

#include "core/ops/blas.h"
#include "core/ops/tangent_factors.h"

namespace olrank {

TangentShape::TangentShape(const NetworkShape& shape) {
  for (std::int64_t l = 0; l < shape.depth; ++l) layers_.push_back(shape.layer(l));
  measure();
}

TangentShape::TangentShape(std::vector<NetworkLayer> layers) : layers_(std::move(layers)) {
  std::int64_t place = 0;
  for (NetworkLayer& layer : layers_) {
    layer.input = place;
    layer.delta = place + layer.columns;
    place += layer.columns + layer.rows;
  }
  measure();
}

TangentShape TangentShape::of_rows(std::int64_t parameters) {
  NetworkLayer layer;
  layer.rows = 1;
  layer.columns = parameters;
  return TangentShape(std::vector{layer});
}

void TangentShape::measure() {
  for (const NetworkLayer& layer : layers_) {
    assert(layer.weight == parameters_);
    assert(!layer.has_bias() || layer.bias == layer.weight + layer.rows * layer.columns);
    parameters_ += layer.rows * layer.unit_parameters();
    factors_ += layer.rows + layer.columns;
    units_ += layer.rows;
    most_rows_ = std::max(most_rows_, layer.rows);
    most_columns_ = std::max(most_columns_, layer.columns);
  }
}

namespace {

/// Calls part(layer, row, first column, end column, offset) for each run of parameters of one row of
/// weights in [begin, end), and bias(layer, row, offset) for each bias; offsets are from `begin`.
template <class Part, class Bias>
void for_parameters(const TangentShape& shape, std::int64_t begin, std::int64_t end, const Part& part,
                    const Bias& bias) {
  for (const NetworkLayer& layer : shape.layers()) {
    const std::int64_t first = std::max(begin, layer.weight);
    const std::int64_t last = std::min(end, layer.weight + layer.rows * layer.columns);
    for (std::int64_t k = first; k < last;) {
      const std::int64_t row = (k - layer.weight) / layer.columns;
      const std::int64_t row_begin = layer.weight + row * layer.columns;
      const std::int64_t stop = std::min(last, row_begin + layer.columns);
      part(layer, row, k - row_begin, stop - row_begin, k - begin);
      k = stop;
    }
    if (!layer.has_bias()) continue;
    for (std::int64_t k = std::max(begin, layer.bias); k < std::min(end, layer.bias + layer.rows); ++k) {
      bias(layer, k - layer.bias, k - begin);
    }
  }
}

using blas::Transpose;

// 64 pairs or 128 documents against one query's documents: products large enough for the BLAS to run at
// full rate, with operands that stay in the second-level cache.
constexpr std::int64_t kRowsPerBlock = 128;

/// Factors in double, laid out for products. Layers of several rows: δ_l, then h_{l−1} followed by a 1
/// where there is a bias. Layers of one row are plain vectors, δ_l · (h_{l−1}, 1), which make one product
/// together.
struct KernelRows {
  std::int64_t outer = 0;   // numbers of the layers of several rows
  std::int64_t vector = 0;  // numbers of the others

  explicit KernelRows(const TangentShape& shape) {
    for (const NetworkLayer& layer : shape.layers())
      (is_outer(layer) ? outer : vector) += layer.unit_parameters() + (is_outer(layer) ? layer.rows : 0);
  }
  /// The rows of vectors have this stride for the BLAS, which refuses 0.
  std::int64_t stride() const { return std::max<std::int64_t>(vector, 1); }
  static bool is_outer(const NetworkLayer& layer) { return layer.rows > 1; }
};

void widen_outer(const TangentShape& shape, TangentFactors docs, double* rows) {
  double* out = rows;
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const float* factors = docs.row(shape, doc);
    for (const NetworkLayer& layer : shape.layers()) {
      if (!KernelRows::is_outer(layer)) continue;
      out = std::copy_n(factors + layer.delta, layer.rows, out);
      out = std::copy_n(factors + layer.input, layer.columns, out);
      if (layer.has_bias()) *out++ = 1.0;
    }
  }
}

/// δ_l · (h_{l−1}, 1): exact, as products of float32 numbers in double.
void widen_vectors(const TangentShape& shape, const float* factors, double* out) {
  for (const NetworkLayer& layer : shape.layers()) {
    if (KernelRows::is_outer(layer)) continue;
    const double delta{factors[layer.delta]};
    for (std::int64_t c = 0; c < layer.columns; ++c) out[c] = delta * double{factors[layer.input + c]};
    if (layer.has_bias()) out[layer.columns] = delta;
    out += layer.unit_parameters();
  }
}

void widen_vectors_of_docs(const TangentShape& shape, TangentFactors docs, std::int64_t width,
                           double* rows) {
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    widen_vectors(shape, docs.row(shape, doc), rows + doc * width);
  }
}

/// The vectors' part of g(winner) − g(loser).
void widen_vectors_of_pairs(const TangentShape& shape, TangentFactors pairs, std::int64_t width,
                            double* rows, double* loser) {
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    double* out = rows + pair * width;
    widen_vectors(shape, pairs.row(shape, 2 * pair), out);
    widen_vectors(shape, pairs.row(shape, 2 * pair + 1), loser);
    for (std::int64_t c = 0; c < width; ++c) out[c] -= loser[c];
  }
}

/// kernel [rows × columns] = Σ (δ·δ')(h·h') over the layers of several rows, of which there is one at
/// least. `product` has room for two such matrices.
void outer_kernel(const TangentShape& shape, const KernelRows& sizes, const double* left, std::int64_t rows,
                  const double* right, std::int64_t columns, double* product, double* kernel) {
  std::int64_t offset = 0;
  const std::int64_t size = rows * columns;
  for (const NetworkLayer& layer : shape.layers()) {
    if (!KernelRows::is_outer(layer)) continue;
    const std::int64_t inputs = layer.unit_parameters();
    const bool is_first = offset == 0;
    double* inner = is_first ? kernel : product + size;
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, layer.rows, 1.0, left + offset, sizes.outer,
               right + offset, sizes.outer, 0.0, inner, columns);
    offset += layer.rows;
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, inputs, 1.0, left + offset, sizes.outer,
               right + offset, sizes.outer, 0.0, product, columns);
    offset += inputs;
    if (is_first) {
      for (std::int64_t i = 0; i < size; ++i) kernel[i] *= product[i];
    } else {
      for (std::int64_t i = 0; i < size; ++i) kernel[i] += inner[i] * product[i];
    }
  }
}

}  // namespace

void tangent_factors(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                     FeatureMatrix docs, std::span<float> factors, std::span<float> scores,
                     std::span<float> magnitudes) {
  const std::int64_t stride = shape.factors();
  assert(docs.features == shape.inputs);
  assert(std::ssize(theta) == shape.parameters());
  assert(std::ssize(factors) == docs.docs * stride);
  assert(scores.empty() || std::ssize(scores) == docs.docs);
  assert(magnitudes.empty() || magnitudes.size() == scores.size());
  context.for_blocks(docs.docs, kDocsPerPass, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    float* row = factors.data() + begin * stride;
    const float* features = docs.values + begin * docs.features;
    // Row strides are those of score_docs(): the bits of a product may depend on its operands' strides.
    const UnitRows hidden = take_hidden(scratch, shape, end - begin);
    const UnitRows kept = hidden_of_factors(shape, row);
    forward_hidden(shape, theta.data(), features, end - begin, hidden);
    for (std::int64_t doc = 0; doc < end - begin; ++doc) {
      std::copy_n(features + doc * docs.features, docs.features, row + doc * stride);
      for (std::int64_t l = 0; l + 1 < shape.depth; ++l)
        std::copy_n(hidden.layer(l) + doc * hidden.stride, shape.width, kept.layer(l) + doc * stride);
    }
    if (!scores.empty()) {
      forward_output(shape, theta.data(), features, hidden, end - begin, scores.data() + begin,
                     magnitudes.empty() ? nullptr : magnitudes.data() + begin);
    }
    const float one = 1.0F;
    backward_deltas(shape, theta.data(), &one, 0, end - begin, hidden, deltas_of_factors(shape, row));
  });
}

void expand_docs(const TangentShape& shape, TangentFactors docs, double scale, std::int64_t begin,
                 std::int64_t end, double* rows, std::int64_t stride) {
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const float* factors = docs.row(shape, doc);
    double* out = rows + doc * stride;
    for_parameters(
        shape, begin, end,
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t from, std::int64_t to,
            std::int64_t place) {
          const double delta = scale * double{factors[layer.delta + row]};
          const float* input = factors + layer.input;
          for (std::int64_t c = from; c < to; ++c) out[place + c - from] = delta * double{input[c]};
        },
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t place) {
          out[place] = scale * double{factors[layer.delta + row]};
        });
  }
}

void expand_pairs(const TangentShape& shape, TangentFactors pairs, double scale, std::int64_t begin,
                  std::int64_t end, double* rows, std::int64_t stride) {
  assert(pairs.docs % 2 == 0);
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    const float* winner = pairs.row(shape, 2 * pair);
    const float* loser = pairs.row(shape, 2 * pair + 1);
    double* out = rows + pair * stride;
    for_parameters(
        shape, begin, end,
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t from, std::int64_t to,
            std::int64_t place) {
          // Products of two float32 numbers are exact in double: one rounding in the difference, one more
          // in the scale.
          const double winner_delta{winner[layer.delta + row]};
          const double loser_delta{loser[layer.delta + row]};
          const float* winner_input = winner + layer.input;
          const float* loser_input = loser + layer.input;
          for (std::int64_t c = from; c < to; ++c) {
            out[place + c - from] =
                scale * (winner_delta * double{winner_input[c]} - loser_delta * double{loser_input[c]});
          }
        },
        [&](const NetworkLayer& layer, std::int64_t row, std::int64_t place) {
          out[place] = scale * (double{winner[layer.delta + row]} - double{loser[layer.delta + row]});
        });
  }
}

void doc_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors docs, double scale,
                double* kernel) {
  const KernelRows sizes(shape);
  const std::int64_t columns = docs.docs;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto outer = shared.take<double>(columns * sizes.outer);
  const auto vectors = shared.take<double>(columns * sizes.vector);
  widen_outer(shape, docs, outer.data());
  widen_vectors_of_docs(shape, docs, sizes.vector, vectors.data());
  context.for_blocks(columns, kRowsPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    double* out = kernel + begin * columns;
    const std::int64_t rows = end - begin;
    if (sizes.outer > 0) {
      Scratch& scratch = context.scratch(worker);
      const Scratch::Frame frame(scratch);
      const auto products = scratch.take<double>(2 * rows * columns);
      outer_kernel(shape, sizes, outer.data() + begin * sizes.outer, rows, outer.data(), columns,
                   products.data(), out);
      for (std::int64_t i = 0; i < rows * columns; ++i) out[i] *= scale;
    }
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, sizes.vector, scale,
               vectors.data() + begin * sizes.vector, sizes.stride(), vectors.data(), sizes.stride(),
               sizes.outer > 0 ? 1.0 : 0.0, out, columns);
  });
}

void pair_doc_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                     TangentFactors docs, double scale, double* kernel, std::int64_t stride) {
  assert(pairs.docs % 2 == 0 && stride >= docs.docs);
  const KernelRows sizes(shape);
  const std::int64_t columns = docs.docs;
  if (columns == 0) return;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto right_outer = shared.take<double>(columns * sizes.outer);
  const auto right_vectors = shared.take<double>(columns * sizes.vector);
  widen_outer(shape, docs, right_outer.data());
  widen_vectors_of_docs(shape, docs, sizes.vector, right_vectors.data());
  context.for_blocks(pairs.docs, kRowsPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    const TangentFactors block{pairs.row(shape, begin), end - begin};
    const std::int64_t rows = block.docs / 2;
    double* out = kernel + begin / 2 * stride;
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto left_vectors = scratch.take<double>((rows + 1) * sizes.vector);
    widen_vectors_of_pairs(shape, block, sizes.vector, left_vectors.data(),
                           left_vectors.data() + rows * sizes.vector);
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, sizes.vector, scale, left_vectors.data(),
               sizes.stride(), right_vectors.data(), sizes.stride(), 0.0, out, stride);
    if (sizes.outer == 0) return;
    const auto left_outer = scratch.take<double>(block.docs * sizes.outer);
    const auto of_docs = scratch.take<double>(3 * block.docs * columns);
    widen_outer(shape, block, left_outer.data());
    outer_kernel(shape, sizes, left_outer.data(), block.docs, right_outer.data(), columns,
                 of_docs.data() + block.docs * columns, of_docs.data());
    for (std::int64_t pair = 0; pair < rows; ++pair) {
      const double* winner = of_docs.data() + 2 * pair * columns;
      const double* loser = winner + columns;
      double* row = out + pair * stride;
      for (std::int64_t j = 0; j < columns; ++j) row[j] += scale * (winner[j] - loser[j]);
    }
  });
}

void pair_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                 TangentFactors others, double scale, double* kernel, std::int64_t stride) {
  assert(others.docs % 2 == 0 && stride >= others.docs / 2);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const std::int64_t columns = others.docs;
  const auto of_docs = scratch.take<double>((pairs.docs / 2) * columns);
  pair_doc_kernel(context, shape, pairs, others, scale, of_docs.data(), columns);
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    const double* row = of_docs.data() + pair * columns;
    double* out = kernel + pair * stride;
    for (std::int64_t t = 0; t < columns / 2; ++t) out[t] = row[2 * t] - row[2 * t + 1];
  }
}

}  // namespace olrank
