#include "cuda/ops/theory_alpha.h"

#include <cmath>

#include "cuda/ops/block_sum.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;

__global__ void set_theory_alpha_kernel(TheoryAlpha theory, const double* log_det, CertaintyRule* rule) {
  if (threadIdx.x == 0) rule->alpha = theory.at(*log_det);
}

// One block: each thread adds every 256th logarithm, then the threads' sums are added in order.
__global__ void __launch_bounds__(kThreads)
    diagonal_log_det_kernel(std::int64_t parameters, const double* diagonal, double lambda,
                            double* log_det) {
  double sum = 0.0;
  for (std::int64_t k = threadIdx.x; k < parameters; k += kThreads) sum += std::log(diagonal[k] / lambda);
  sum = block_sum(sum, dynamic_shared<double>());
  if (threadIdx.x == 0) *log_det = sum;
}

}  // namespace

void set_theory_alpha(Stream stream, const TheoryAlpha& theory, const double* log_det,
                      CertaintyRule* rule) {
  launch(set_theory_alpha_kernel, dim3{1}, dim3{32}, 0, stream, theory, log_det, rule);
}

void diagonal_log_det(Stream stream, std::int64_t parameters, const double* diagonal, double lambda,
                      double* log_det) {
  launch(diagonal_log_det_kernel, dim3{1}, dim3{kThreads}, kThreads / 32 * sizeof(double), stream,
         parameters, diagonal, lambda, log_det);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
