#include "cuda/ops/pair_corner.h"

#include <cmath>

#include "core/math/pair_loss.h"
#include "cuda/ops/stable_groups.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;

__device__ double gram_at(const double* m, std::int64_t docs, std::int32_t i, std::int32_t j) {
  return i > j ? m[i * docs + j] : m[j * docs + i];
}

// One block. The factor is computed column by column, where a thread owns rows below the pivot; then each
// thread computes columns of the inverse. Sums are in a fixed order, in double.
__device__ void factor_corner_kernel(const Grid& /*grid*/, std::int64_t docs, const double* m,
                                     const PreferencePair* pairs, std::int64_t count, double* d,
                                     double* inverse, CovarianceStatus* status) {
  if (status->failed != 0) return;
  for (std::int64_t at = threadIdx.x; at < count * count; at += kThreads) {
    const PreferencePair& one = pairs[at / count];
    const PreferencePair& two = pairs[at % count];
    const double product =
        pair_product(gram_at(m, docs, one.winner, two.winner), gram_at(m, docs, one.winner, two.loser),
                     gram_at(m, docs, one.loser, two.winner), gram_at(m, docs, one.loser, two.loser));
    d[at] = product + (at / count == at % count ? 1.0 : 0.0);
  }
  __syncthreads();
  for (std::int64_t k = 0; k < count; ++k) {
    double pivot = d[k * count + k];
    for (std::int64_t j = 0; j < k; ++j) pivot -= d[k * count + j] * d[k * count + j];
    if (!(pivot > 0.0) || !std::isfinite(pivot)) {
      if (threadIdx.x == 0) status->failed = 1;
      return;
    }
    const double root = std::sqrt(pivot);
    __syncthreads();
    if (threadIdx.x == 0) d[k * count + k] = root;
    for (std::int64_t i = k + 1 + threadIdx.x; i < count; i += kThreads) {
      double value = d[i * count + k];
      for (std::int64_t j = 0; j < k; ++j) value -= d[i * count + j] * d[k * count + j];
      d[i * count + k] = value / root;
    }
    __syncthreads();
  }
  for (std::int64_t column = threadIdx.x; column < count; column += kThreads) {
    for (std::int64_t i = 0; i < count; ++i) {
      double value = i == column ? 1.0 : 0.0;
      for (std::int64_t j = column; j < i; ++j) value -= d[i * count + j] * inverse[j * count + column];
      inverse[i * count + column] = i < column ? 0.0 : value / d[i * count + i];
    }
  }
  if (threadIdx.x != 0) return;
  double log_det = 0.0;
  for (std::int64_t i = 0; i < count; ++i) log_det += 2.0 * std::log(d[i * count + i]);
  status->log_det += log_det;
}

}  // namespace

void factor_pair_corner(Stream stream, std::int64_t docs, const double* m, const PreferencePair* pairs,
                        std::int64_t count, double* corner, double* inverse, CovarianceStatus* status) {
  if (count == 0) return;
  launch(kernel<factor_corner_kernel, kThreads>, {1}, 0, stream, docs, m, pairs, count, corner, inverse,
         status);
}

namespace {

/// Item 2t is the first document of term t, item 2t + 1 its second.
struct DocOfEnd {
  const PairTerm* terms;

  __device__ std::int32_t operator()(std::int64_t item) const {
    const PairTerm& term = terms[item / 2];
    if (term.first < 0) return -1;
    return item % 2 == 0 ? term.first : term.second;
  }
};

}  // namespace

std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms) {
  return docs + 2 * terms;
}

void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence) {
  group_stably(stream, DocOfEnd{terms}, 2 * count, docs, workspace, incidence.offsets, incidence.ends);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
