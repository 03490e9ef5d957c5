#pragma once

#include <cstdint>

#include "core/math/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/pair_training.h"
#include "cuda/ops/tangent_factors.h"

// The device version of core/ops/gradient_products.h, in double; g is never written out. If `skip` points
// to a number other than 0, a call does nothing, so that a captured loop can end early.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Doubles of workspace.
std::int64_t gradient_products_workspace(const TangentShape& shape, std::int64_t docs,
                                         std::int64_t columns = 1);
std::int64_t gradient_sum_workspace(const TangentShape& shape, std::int64_t docs, std::int64_t columns = 1);

/// products [columns × docs] = g(x_i)·v for vectors v [columns × p].
void gradient_products(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* v,
                       double* workspace, double* products, const std::int32_t* skip = nullptr,
                       std::int64_t columns = 1);

/// sum [columns × p] = Σ_i weights[i] g(x_i) for weights [columns × docs].
void gradient_sum(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* weights,
                  double* workspace, double* sum, const std::int32_t* skip = nullptr,
                  std::int64_t columns = 1);

// The device version of core/ops/pair_training.h: power iteration without host synchronisation.

/// The state lies in device memory. κ is curvature_of(estimate).
struct CurvatureState {
  double estimate = 0.0;
  double norm = 0.0;  // of the vector; 0 until it has been measured
  std::int32_t iterations = 0;
  std::int32_t settled = 0;
};

struct CurvatureTask {
  TangentShape shape;
  FactorRows rows;  // of the distinct documents
  const PairTerm* terms = nullptr;
  std::int64_t count = 0;
  PairIncidence incidence;
  double tolerance = kCurvatureTolerance;
  const double* fresh = nullptr;  // [p], replaces a zero vector
};

/// Doubles of workspace.
std::int64_t curvature_workspace(const TangentShape& shape, std::int64_t docs);

/// Resets the state and measures `vector` [p], which the caller has filled with the previous result or at
/// random. A zero vector, which zero gradients leave behind, is replaced by `fresh`.
void begin_curvature(Stream stream, const CurvatureTask& task, double* vector, CurvatureState* state);

/// One iteration; does nothing once the estimate has settled.
void iterate_curvature(Stream stream, const CurvatureTask& task, double* vector, double* workspace,
                       CurvatureState* state);

/// step [1] = stable_step(rate, growth · κ, prior): σ_t of gradient descent.
void step_from_curvature(Stream stream, const CurvatureState* state, double growth, double rate,
                         double prior, double* step);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
