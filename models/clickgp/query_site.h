#pragma once

#include <cstdint>
#include <span>

#include "core/math/portable_exp.h"

namespace olrank {

/// 1 / (1 + e^−x), by + − × ÷ alone.
inline double click_probability(double x) {
  constexpr double kMost = 30.0;
  const double clamped = x < -kMost ? -kMost : x > kMost ? kMost : x;
  const double decay = portable_exp_nonpositive(clamped < 0.0 ? clamped : -clamped);
  return (clamped < 0.0 ? decay : 1.0) / (1.0 + decay);
}

/// How far documents (σ²) and queries (τ²) may depart from what their features say.
struct Departures {
  double document = 0.5;
  double query = 0.5;
};

/// The remembered documents of a query: expected examinations n > 0, clicks c, and scores m by the model.
struct SiteEvidence {
  std::span<const double> examined;
  std::span<const double> clicks;
  std::span<const double> model;
};

/// The departures u of documents and b of the query at the mode of their posterior given θ, and the
/// Gaussian there, of which θ is learned: M = diag h − ρ h hᵀ of the model's scores, and M m + v.
struct QuerySite {
  std::span<double> departure;   // u, where the search begins, too
  std::span<double> curvature;   // h
  std::span<double> evidence;    // v + M m
  double query_departure = 0.0;  // b, likewise
  double coupling = 0.0;         // ρ

  // Of the last step, for the variances.
  double curvature_sum = 0.0;  // Σ h
  double slope_sum = 0.0;      // Σ v
};

/// At most `steps` of Newton's method for f = m + u + b, each of at most 2, until one is below
/// `least_step`. What it leaves is of the last step's beginning.
void solve_site(const Departures& departures, const SiteEvidence& evidence, int steps, double least_step,
                QuerySite& site);

/// The variance of a document's departure that is left at a site; σ² where nothing was seen.
inline double variance_left(const Departures& departures, double curvature, double coupling) {
  const double s2 = departures.document;
  return s2 - s2 * s2 * (curvature - coupling * curvature * curvature);
}

}  // namespace olrank
