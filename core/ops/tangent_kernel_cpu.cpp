#include <algorithm>
#include <cassert>

#include "core/ops/blas.h"
#include "core/ops/tangent_kernel.h"

namespace olrank {
namespace {

using blas::Transpose;

// 64 pairs or 128 documents against one query's documents: products large enough for the BLAS to run at
// full rate, with operands that stay in the second-level cache.
constexpr std::int64_t kRowsPerBlock = 128;

/// Factors in double, laid out for products. Hidden layers: δ_l, then h_{l−1} followed by a 1 where there
/// is a bias. The output layer has a single unit, so its part of g is a plain vector, δ_L · (h_{L−1}, 1).
struct KernelRows {
  std::int64_t hidden = 0;  // numbers of the hidden layers in a row
  std::int64_t output = 0;  // numbers of the output layer's vector

  explicit KernelRows(const NetworkShape& shape) {
    const std::int64_t bias = shape.biases ? 1 : 0;
    for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
      const NetworkLayer layer = shape.layer(l);
      hidden += layer.rows + layer.columns + bias;
    }
    output = shape.layer(shape.depth - 1).columns + bias;
  }
};

void widen_hidden(const NetworkShape& shape, TangentFactors docs, double* rows) {
  double* out = rows;
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    const float* factors = docs.row(shape, doc);
    for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
      const NetworkLayer layer = shape.layer(l);
      out = std::copy_n(factors + layer.delta, layer.rows, out);
      out = std::copy_n(factors + layer.input, layer.columns, out);
      if (layer.has_bias()) *out++ = 1.0;
    }
  }
}

/// δ_L · (h_{L−1}, 1): exact, as products of float32 numbers in double.
void widen_output(const NetworkShape& shape, const float* factors, double* out) {
  const NetworkLayer layer = shape.layer(shape.depth - 1);
  const double delta{factors[layer.delta]};
  for (std::int64_t c = 0; c < layer.columns; ++c) out[c] = delta * double{factors[layer.input + c]};
  if (layer.has_bias()) out[layer.columns] = delta;
}

void widen_output_of_docs(const NetworkShape& shape, TangentFactors docs, std::int64_t width,
                          double* rows) {
  for (std::int64_t doc = 0; doc < docs.docs; ++doc) {
    widen_output(shape, docs.row(shape, doc), rows + doc * width);
  }
}

/// The output layer's part of g(winner) − g(loser).
void widen_output_of_pairs(const NetworkShape& shape, TangentFactors pairs, std::int64_t width,
                           double* rows, double* loser) {
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    double* out = rows + pair * width;
    widen_output(shape, pairs.row(shape, 2 * pair), out);
    widen_output(shape, pairs.row(shape, 2 * pair + 1), loser);
    for (std::int64_t c = 0; c < width; ++c) out[c] -= loser[c];
  }
}

/// kernel [rows × columns] = Σ over hidden layers of (δ·δ')(h·h'). `product` has room for two such
/// matrices. Needs a hidden layer.
void hidden_kernel(const NetworkShape& shape, const KernelRows& sizes, const double* left,
                   std::int64_t rows, const double* right, std::int64_t columns, double* product,
                   double* kernel) {
  std::int64_t offset = 0;
  const std::int64_t size = rows * columns;
  for (std::int64_t l = 0; l + 1 < shape.depth; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const std::int64_t inputs = layer.columns + (layer.has_bias() ? 1 : 0);
    double* inner = l == 0 ? kernel : product + size;
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, layer.rows, 1.0, left + offset, sizes.hidden,
               right + offset, sizes.hidden, 0.0, inner, columns);
    offset += layer.rows;
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, inputs, 1.0, left + offset, sizes.hidden,
               right + offset, sizes.hidden, 0.0, product, columns);
    offset += inputs;
    if (l == 0) {
      for (std::int64_t i = 0; i < size; ++i) kernel[i] *= product[i];
    } else {
      for (std::int64_t i = 0; i < size; ++i) kernel[i] += inner[i] * product[i];
    }
  }
}

std::size_t size_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a * b);
}

}  // namespace

void doc_kernel(ExecutionContext& context, const NetworkShape& shape, TangentFactors docs, double scale,
                double* kernel) {
  const KernelRows sizes(shape);
  const std::int64_t columns = docs.docs;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto hidden = shared.take<double>(size_of(columns, sizes.hidden));
  const auto output = shared.take<double>(size_of(columns, sizes.output));
  widen_hidden(shape, docs, hidden.data());
  widen_output_of_docs(shape, docs, sizes.output, output.data());
  context.for_blocks(columns, kRowsPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    double* out = kernel + begin * columns;
    const std::int64_t rows = end - begin;
    if (shape.depth > 1) {
      Scratch& scratch = context.scratch(worker);
      const Scratch::Frame frame(scratch);
      const auto products = scratch.take<double>(2 * size_of(rows, columns));
      hidden_kernel(shape, sizes, hidden.data() + begin * sizes.hidden, rows, hidden.data(), columns,
                    products.data(), out);
      for (std::int64_t i = 0; i < rows * columns; ++i) out[i] *= scale;
    }
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, sizes.output, scale,
               output.data() + begin * sizes.output, sizes.output, output.data(), sizes.output,
               shape.depth > 1 ? 1.0 : 0.0, out, columns);
  });
}

void pair_doc_kernel(ExecutionContext& context, const NetworkShape& shape, TangentFactors pairs,
                     TangentFactors docs, double scale, double* kernel, std::int64_t stride) {
  assert(pairs.docs % 2 == 0 && stride >= docs.docs);
  const KernelRows sizes(shape);
  const std::int64_t columns = docs.docs;
  if (columns == 0) return;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto right_hidden = shared.take<double>(size_of(columns, sizes.hidden));
  const auto right_output = shared.take<double>(size_of(columns, sizes.output));
  widen_hidden(shape, docs, right_hidden.data());
  widen_output_of_docs(shape, docs, sizes.output, right_output.data());
  context.for_blocks(pairs.docs, kRowsPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    const TangentFactors block{pairs.row(shape, begin), end - begin};
    const std::int64_t rows = block.docs / 2;
    double* out = kernel + begin / 2 * stride;
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto left_output = scratch.take<double>(size_of(rows + 1, sizes.output));
    widen_output_of_pairs(shape, block, sizes.output, left_output.data(),
                          left_output.data() + rows * sizes.output);
    blas::gemm(Transpose::kNo, Transpose::kYes, rows, columns, sizes.output, scale, left_output.data(),
               sizes.output, right_output.data(), sizes.output, 0.0, out, stride);
    if (shape.depth == 1) return;
    const auto left_hidden = scratch.take<double>(size_of(block.docs, sizes.hidden));
    const auto of_docs = scratch.take<double>(3 * size_of(block.docs, columns));
    widen_hidden(shape, block, left_hidden.data());
    hidden_kernel(shape, sizes, left_hidden.data(), block.docs, right_hidden.data(), columns,
                  of_docs.data() + block.docs * columns, of_docs.data());
    for (std::int64_t pair = 0; pair < rows; ++pair) {
      const double* winner = of_docs.data() + 2 * pair * columns;
      const double* loser = winner + columns;
      double* row = out + pair * stride;
      for (std::int64_t j = 0; j < columns; ++j) row[j] += scale * (winner[j] - loser[j]);
    }
  });
}

void pair_kernel(ExecutionContext& context, const NetworkShape& shape, TangentFactors pairs,
                 TangentFactors others, double scale, double* kernel, std::int64_t stride) {
  assert(others.docs % 2 == 0 && stride >= others.docs / 2);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const std::int64_t columns = others.docs;
  const auto of_docs = scratch.take<double>(size_of(pairs.docs / 2, columns));
  pair_doc_kernel(context, shape, pairs, others, scale, of_docs.data(), columns);
  for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
    const double* row = of_docs.data() + pair * columns;
    double* out = kernel + pair * stride;
    for (std::int64_t t = 0; t < columns / 2; ++t) out[t] = row[2 * t] - row[2 * t + 1];
  }
}

}  // namespace olrank
