#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/synthetic_source.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// A known scoring function h, and documents whose score is known: of synth:realisable. h is linear,
/// θ*·x, or a network with ReLUs and without biases. A document of grade g is a point of the unit sphere
/// with h(x) = (g − (V − 1)/2) · gap, V being the documents of a query.
class RealisableTarget {
 public:
  explicit RealisableTarget(const SyntheticSource& source);

  double at(std::span<const double> x) const;
  /// h of the documents of a grade.
  double level(std::int64_t grade) const;
  /// A document of the grade: where the arc from a uniform point of the sphere to a point with an extreme
  /// score crosses the grade's level.
  void draw(RngStream& stream, std::int64_t grade, std::span<double> x) const;

 private:
  double unscaled(std::span<const double> x) const;

  SyntheticSource source_;
  std::vector<double> hidden_;  // [units × features]; θ* where there are no units
  double scale_ = 1.0;
  std::vector<double> lowest_;   // points of the sphere whose scores are
  std::vector<double> highest_;  // beyond all levels
};

}  // namespace olrank
