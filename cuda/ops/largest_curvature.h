#pragma once

#include <cstdint>

#include "core/math/largest_curvature.h"
#include "core/ops/pair_training.h"
#include "cuda/ops/pair_incidence.h"
#include "cuda/ops/relu_layers.h"

// largest_curvature() of core/ops/largest_curvature.h on the device: power iteration whose steps need no
// answer from the host.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// On the device. κ is estimate / 4.
struct CurvatureState {
  double estimate = 0.0;
  double norm = 0.0;  // of the vector; 0 where it has to be measured first
  std::int32_t iterations = 0;
  std::int32_t settled = 0;
};

struct CurvatureTask {
  NetworkShape shape;
  FactorRows rows;  // of the distinct documents
  const PairTerm* terms = nullptr;
  std::int64_t count = 0;
  PairIncidence incidence;
  double tolerance = kCurvatureTolerance;
  const double* fresh = nullptr;  // [p], where a vector without length begins anew
};

/// Doubles of workspace.
std::int64_t curvature_workspace(const NetworkShape& shape, std::int64_t docs);

/// Makes the state fresh and measures `vector` [p], which the caller has filled: where an earlier iteration
/// stopped, or at random. One that gradients without length have left as zeros begins anew.
void begin_curvature(Stream stream, const CurvatureTask& task, double* vector, double* workspace,
                     CurvatureState* state);

/// One iteration; once the estimate has settled, nothing any more.
void iterate_curvature(Stream stream, const CurvatureTask& task, double* vector, double* workspace,
                       CurvatureState* state);

/// step [1] = rate / (κ + prior): σ_t of gradient descent.
void step_from_curvature(Stream stream, const CurvatureState* state, double rate, double prior,
                         double* step);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
