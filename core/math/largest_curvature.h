#pragma once

#include "core/math/host_device.h"

// Power iteration for the largest curvature of the pair loss: vᵀ(Σ w g gᵀ)v with ‖v‖ = 1, the Rayleigh
// quotient, never falls from one iteration to the next.
namespace olrank {

constexpr int kMostCurvatureIterations = 100;
constexpr double kCurvatureTolerance = 1e-3;

/// Whether a quotient has grown by no more than `tolerance` of the estimate. The first one never has.
OLRANK_HOST_DEVICE inline bool has_settled(int iterations, double quotient, double estimate,
                                           double tolerance) {
  return iterations > 0 && quotient <= estimate * (1.0 + tolerance);
}

/// κ from λ_max(Σ w g gᵀ), as σ' ≤ 1/4.
OLRANK_HOST_DEVICE inline double curvature_of(double largest_quotient) {
  return largest_quotient / 4.0;
}

}  // namespace olrank
