#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/ops/blas.h"
#include "core/ops/diagonal_covariance.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kParametersPerBlock = 4096;
// Partial sums, V × V numbers each: enough for the threads, few enough for memory at V above 1,000.
constexpr std::int64_t kParts = 16;

}  // namespace

void add_to_diagonal(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                     double scale, std::span<double> diagonal) {
  assert(pairs.docs % 2 == 0);
  const std::int64_t p = shape.parameters();
  assert(std::ssize(diagonal) == p);
  context.for_blocks(p, kParametersPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto row = scratch.take<double>(end - begin);
    double* out = diagonal.data() + begin;
    for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
      expand_pairs(shape, {pairs.row(shape, 2 * pair), 2}, 1.0, begin, end, row.data(), end - begin);
      for (std::int64_t k = 0; k < end - begin; ++k) {
        const double g = row[k];
        out[k] += scale * (g * g);
      }
    }
  });
}

void diagonal_gram(ExecutionContext& context, const TangentShape& shape, TangentFactors docs, double scale,
                   std::span<const double> weights, double* m) {
  const std::int64_t count = docs.docs;
  assert(std::ssize(weights) == shape.parameters());
  if (count == 0) return;
  const std::int64_t units = shape.units();
  const std::int64_t units_per_part = (units + kParts - 1) / kParts;
  const std::int64_t used_parts = (units + units_per_part - 1) / units_per_part;
  const std::int64_t widest = shape.most_columns() + 1;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto parts = shared.take<double>(used_parts * (count * count));
  context.for_blocks(units, units_per_part, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto active = scratch.take<std::int64_t>(count);
    const auto root = scratch.take<double>(widest);
    const auto rows = scratch.take<double>(count * widest);
    const auto gram = scratch.take<double>(count * count);
    double* part = parts.data() + begin / units_per_part * count * count;
    std::fill_n(part, count * count, 0.0);
    const NetworkLayer* layer = shape.layers().data();
    std::int64_t before = 0;  // units of earlier layers
    for (std::int64_t number = begin; number < end; ++number) {
      while (number - before >= layer->rows) before += layer++->rows;
      const std::int64_t unit = number - before;
      const std::int64_t columns = layer->columns + (layer->has_bias() ? 1 : 0);
      std::int64_t rows_used = 0;
      for (std::int64_t doc = 0; doc < count; ++doc) {
        if (docs.row(shape, doc)[layer->delta + unit] != 0.0F) active[rows_used++] = doc;
      }
      const double* weight = weights.data() + layer->weight + unit * layer->columns;
      for (std::int64_t c = 0; c < layer->columns; ++c) root[c] = std::sqrt(scale * weight[c]);
      if (layer->has_bias()) {
        root[layer->columns] = std::sqrt(scale * weights[layer->bias + unit]);
      }
      for (std::int64_t i = 0; i < rows_used; ++i) {
        const float* factors = docs.row(shape, active[i]);
        const double delta{factors[layer->delta + unit]};
        double* row = rows.data() + i * columns;
        for (std::int64_t c = 0; c < layer->columns; ++c) {
          row[c] = delta * double{factors[layer->input + c]} * root[c];
        }
        if (layer->has_bias()) row[layer->columns] = delta * root[layer->columns];
      }
      blas::gemm(Transpose::kNo, Transpose::kYes, rows_used, rows_used, columns, 1.0, rows.data(), columns,
                 rows.data(), columns, 0.0, gram.data(), rows_used);
      for (std::int64_t i = 0; i < rows_used; ++i) {
        double* out = part + active[i] * count;
        const double* in = gram.data() + i * rows_used;
        for (std::int64_t j = 0; j <= i; ++j) out[active[j]] += in[j];
      }
    }
  });
  context.for_blocks(count * count, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0.0;
      for (std::int64_t part = 0; part < used_parts; ++part) sum += parts[part * count * count + i];
      m[i] = sum;
    }
  });
}

}  // namespace olrank
