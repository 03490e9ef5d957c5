#include "recommend/trees/part_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/math/portable_exp.h"
#include "core/runtime/vector_clones.h"
#include "recommend/trees/squared_sums.h"

namespace olrank {
namespace {

constexpr std::int64_t kTermsOfBlock = 256;  // summed in float

using Parts = std::array<std::vector<double>, kTreeBranches>;

/// Factors and gradients of the parts in float, padded.
struct PaddedParts {
  explicit PaddedParts(int padded) : stride(padded), values(std::size_t(kTreeBranches) * padded, 0.0F) {}
  float* part(int number) { return values.data() + std::size_t(number) * stride; }
  const float* part(int number) const { return values.data() + std::size_t(number) * stride; }

  int stride;
  std::vector<float> values;
};

OLRANK_ALWAYS_INLINE void add_padded(float scale, const float* vector, float* sum, int stride) {
  for (int k = 0; k < stride; ++k) sum[k] += scale * vector[k];
}

/// The loss of a block of terms, and minus its gradient if `gradient` is wanted. A block has few enough
/// terms that the product of their 1 + e^{−|z|} ≤ 2 does not overflow, so that it needs one logarithm.
OLRANK_VECTOR_CLONES double block_loss(const PairTerm* terms, const float* vectors, std::int64_t count,
                                       int stride, const std::uint8_t* part_of, const float* factors,
                                       float* gradient) {
  double linear = 0.0;
  double product = 1.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const w = vectors + i * stride;
    const int plus = terms[i].plus < 0 ? -1 : part_of[terms[i].plus];
    const int minus = terms[i].minus < 0 ? -1 : part_of[terms[i].minus];
    if (plus == minus) {  // z = 0 whatever the factors
      product *= 2.0;
      continue;
    }
    float z = terms[i].offset;
    if (plus >= 0) z += padded_product(w, factors + plus * stride, stride);
    if (minus >= 0) z -= padded_product(w, factors + minus * stride, stride);
    const double e = portable_exp_nonpositive(-std::fabs(static_cast<double>(z)));
    product *= 1.0 + e;
    if (z < 0.0F) linear -= z;
    if (gradient == nullptr) continue;
    const auto pull = static_cast<float>((z < 0.0F ? 1.0 : e) / (1.0 + e));  // σ(−z)
    if (plus >= 0) add_padded(pull, w, gradient + plus * stride, stride);
    if (minus >= 0) add_padded(-pull, w, gradient + minus * stride, stride);
  }
  return linear + std::log(product);
}

double all_pairs_loss(const NodePairs& pairs, std::span<const std::uint8_t> part_of, const Parts& factors,
                      Parts* gradient) {
  const int stride = pairs.vectors.stride();
  PaddedParts padded(stride);
  for (int part = 0; part < kTreeBranches; ++part)
    std::transform(factors[part].begin(), factors[part].end(), padded.part(part),
                   [](double value) { return static_cast<float>(value); });
  PaddedParts pulls(stride);
  double loss = 0.0;
  const std::int64_t count = std::ssize(pairs.terms);
  for (std::int64_t begin = 0; begin < count; begin += kTermsOfBlock) {
    if (gradient != nullptr) std::fill(pulls.values.begin(), pulls.values.end(), 0.0F);
    loss += block_loss(pairs.terms.data() + begin, pairs.vectors.row(begin).data(),
                       std::min(kTermsOfBlock, count - begin), stride, part_of.data(), padded.values.data(),
                       gradient == nullptr ? nullptr : pulls.values.data());
    if (gradient == nullptr) continue;
    for (int part = 0; part < kTreeBranches; ++part) {
      for (std::size_t k = 0; k < (*gradient)[part].size(); ++k)
        (*gradient)[part][k] -= pulls.part(part)[k];
    }
  }
  return loss;
}

}  // namespace

double pair_loss_of_parts(const NodePairs& pairs, std::span<const std::uint8_t> part_of,
                          const Parts& factors) {
  return all_pairs_loss(pairs, part_of, factors, nullptr);
}

PartFit fit_parts(const Parts& sums, const std::array<std::int64_t, kTreeBranches>& rows,
                  std::span<const double> anchor, std::span<const double> without_rows, double lambda,
                  const NodePairs& pairs, std::span<const std::uint8_t> part_of,
                  const DescentSettings& settings) {
  const std::size_t dimension = anchor.size();
  RidgeSolver solver(static_cast<int>(dimension));
  Parts factors;
  for (int part = 0; part < kTreeBranches; ++part) {
    factors[part].assign(without_rows.begin(), without_rows.end());
    if (rows[part] > 0) solver.minimise(sums[part], lambda, anchor, factors[part]);
  }
  PartFit best{.factors = factors, .objective = std::numeric_limits<double>::infinity()};
  const bool descend = settings.pair_weight > 0.0 && !pairs.terms.empty();
  Parts squares;
  squares.fill(std::vector<double>(dimension, 0.0));
  const int steps = descend ? settings.steps : 0;
  for (int step = 0; step <= steps; ++step) {
    double objective = 0.0;
    Parts gradient;
    gradient.fill(std::vector<double>(dimension, 0.0));
    if (descend) {
      objective += settings.pair_weight *
                   all_pairs_loss(pairs, part_of, factors, step < steps ? &gradient : nullptr);
    }
    for (int part = 0; part < kTreeBranches; ++part) {
      if (rows[part] == 0) continue;
      objective += squared_error(sums[part], factors[part]);
      for (double& slope : gradient[part]) slope *= settings.pair_weight;
      add_squared_error_gradient(sums[part], factors[part], gradient[part]);
      for (std::size_t k = 0; k < dimension; ++k) {
        const double distance = factors[part][k] - anchor[k];
        objective += lambda * distance * distance;
        gradient[part][k] += 2.0 * lambda * distance;
      }
    }
    if (objective < best.objective) best = {factors, objective};
    if (step == steps) break;
    for (int part = 0; part < kTreeBranches; ++part) {
      if (rows[part] == 0) continue;
      for (std::size_t k = 0; k < dimension; ++k) {
        squares[part][k] += gradient[part][k] * gradient[part][k];
        if (squares[part][k] > 0.0)
          factors[part][k] -= settings.step_size * gradient[part][k] / std::sqrt(squares[part][k]);
      }
    }
  }
  return best;
}

}  // namespace olrank
