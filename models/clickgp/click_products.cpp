#include "models/clickgp/click_products.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "core/ops/blas.h"

namespace olrank {
namespace {

/// Sums over documents for each pair of inputs, in lower triangles [inputs × inputs].
struct ProductSums {
  AlignedVector<double> gradient;  // Σ g x x′
  AlignedVector<double> square;    // Σ (g x x′)²
};

/// The documents of some queries: inputs less their centres, and the gradient g of the log-likelihood by
/// their scores where no unit has a weight.
struct ProductDocs {
  AlignedVector<double> inputs;    // [docs × inputs]
  AlignedVector<double> gradient;  // [docs]
};

std::vector<double> mean_inputs(std::span<const ClickMemory::Entry> queries, std::int64_t inputs) {
  std::vector<double> means(inputs);
  std::int64_t docs = 0;
  for (const ClickMemory::Entry& entry : queries) {
    const std::vector<float>& scaled = entry.known->scaled;
    for (std::size_t i = 0; i < scaled.size(); ++i) means[i % inputs] += scaled[i];
    docs += std::ssize(entry.known->docs);
  }
  for (double& mean : means) mean /= static_cast<double>(std::max<std::int64_t>(docs, 1));
  return means;
}

ProductDocs docs_of(ExecutionContext& context, const ClickBelief& belief, std::size_t model,
                    std::span<const ClickMemory::Entry> queries, std::span<const double> centres) {
  const auto inputs = std::ssize(centres);
  std::vector<std::int64_t> first(queries.size() + 1);
  for (std::size_t q = 0; q < queries.size(); ++q)
    first[q + 1] = first[q] + std::ssize(queries[q].known->docs);
  ProductDocs docs;
  docs.inputs.resize(first.back() * inputs);
  docs.gradient.resize(first.back());
  const ClickFeatures features(inputs, belief.features().additive());  // without units
  const std::int64_t width = features.columns();
  context.for_blocks(std::ssize(queries), 8, [&](std::int64_t begin, std::int64_t end, int) {
    AlignedVector<double> rows;
    for (std::int64_t q = begin; q < end; ++q) {
      const KnownQuery& known = *queries[q].known;
      const KnownQuery::Site& site = known.sites[model];
      const std::size_t count = known.docs.size();
      rows.resize(count * width);
      features.expand(known.scaled, known.means, rows);
      double* gradient = docs.gradient.data() + first[q];
      double pulled = 0.0;  // h · m
      for (std::size_t doc = 0; doc < count; ++doc) {
        const double* row = rows.data() + static_cast<std::int64_t>(doc) * width;
        gradient[doc] = std::inner_product(row, row + width, belief.theta().begin(), 0.0);
        pulled += site.curvature[doc] * gradient[doc];
      }
      for (std::size_t doc = 0; doc < count; ++doc)
        gradient[doc] = site.evidence[doc] - site.curvature[doc] * (gradient[doc] - site.coupling * pulled);
      double* out = docs.inputs.data() + first[q] * inputs;
      for (std::size_t i = 0; i < known.scaled.size(); ++i)
        out[i] = known.scaled[i] - centres[i % centres.size()];
    }
  });
  return docs;
}

void add_docs(ExecutionContext& context, ProductDocs& docs, std::int64_t inputs, ProductSums& sums) {
  const auto count = std::ssize(docs.gradient);
  AlignedVector<double> weighted(docs.inputs.size());
  constexpr std::int64_t kPanel = 64;
  const auto add = [&](AlignedVector<double>& to) {
    context.for_blocks(inputs, kPanel, [&](std::int64_t begin, std::int64_t end, int) {
      blas::gemm(blas::Transpose::kYes, blas::Transpose::kNo, end - begin, end, count, 1.0,
                 docs.inputs.data() + begin, inputs, weighted.data(), inputs, 1.0,
                 to.data() + begin * inputs, inputs);
    });
  };
  const auto weigh = [&] {
    for (std::int64_t doc = 0; doc < count; ++doc) {
      for (std::int64_t i = doc * inputs; i < (doc + 1) * inputs; ++i)
        weighted[i] = docs.gradient[doc] * docs.inputs[i];
    }
  };
  weigh();
  add(sums.gradient);
  for (double& value : docs.inputs) value *= value;
  for (double& value : docs.gradient) value *= value;
  weigh();
  add(sums.square);
}

struct Steep {
  double steepness = 0.0;  // gradient in its standard deviations
  std::int32_t first = 0;
  std::int32_t second = 0;
};

std::vector<Steep> steepest(const ProductSums& sums, std::int64_t inputs, std::size_t most) {
  const double pairs = 0.5 * static_cast<double>(inputs) * static_cast<double>(inputs + 1);
  constexpr double kCaution = 20.0;  // normal noise gets above it in one search of a hundred
  const double level = std::sqrt(2.0 * std::log(kCaution * pairs));
  std::vector<Steep> found;
  for (std::int64_t i = 0; i < inputs; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      constexpr double kLeastSquare = 1e-6;
      const double steepness =
          std::abs(sums.gradient[i * inputs + j]) / std::sqrt(sums.square[i * inputs + j] + kLeastSquare);
      if (steepness > level)
        found.push_back({steepness, static_cast<std::int32_t>(j), static_cast<std::int32_t>(i)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Steep& a, const Steep& b) { return a.steepness > b.steepness; });
  found.resize(std::min(found.size(), most));
  return found;
}

}  // namespace

std::vector<ClickProduct> find_products(ExecutionContext& context, const ClickBelief& belief,
                                        std::size_t model, std::span<const ClickMemory::Entry> queries) {
  const std::int64_t inputs = belief.features().inputs();
  const std::span<const ClickProduct> before = belief.features().products();
  const std::vector<double> centres = mean_inputs(queries, inputs);
  ProductSums sums;
  sums.gradient.resize(inputs * inputs);
  sums.square.resize(inputs * inputs);
  constexpr std::int64_t kChunkNumbers = 1 << 21;  // 16 MB of inputs at a time
  const std::int64_t most_docs = std::max<std::int64_t>(kChunkNumbers / inputs, 256);
  for (std::size_t begin = 0; begin < queries.size();) {
    std::size_t end = begin;
    std::int64_t docs = 0;
    while (end < queries.size() &&
           (end == begin || docs + std::ssize(queries[end].known->docs) <= most_docs))
      docs += std::ssize(queries[end++].known->docs);
    ProductDocs chunk = docs_of(context, belief, model, queries.subspan(begin, end - begin), centres);
    add_docs(context, chunk, inputs, sums);
    begin = end;
  }

  const std::vector<Steep> found = steepest(sums, inputs, before.size());
  std::vector<ClickProduct> products(before.size());
  std::vector<Steep> fresh;
  for (const Steep& pair : found) {
    const auto kept = std::find_if(before.begin(), before.end(), [&](const ClickProduct& product) {
      return product.first == pair.first && product.second == pair.second;
    });
    if (kept == before.end()) {
      fresh.push_back(pair);
    } else {
      products[kept - before.begin()] = *kept;
    }
  }
  auto place = products.begin();
  for (const Steep& pair : fresh) {
    place =
        std::find_if(place, products.end(), [](const ClickProduct& product) { return !product.is_used(); });
    *place = {pair.first, pair.second, centres[pair.first], centres[pair.second]};
  }
  return products;
}

}  // namespace olrank
