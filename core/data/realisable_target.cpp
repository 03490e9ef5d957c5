#include "core/data/realisable_target.h"

#include <algorithm>
#include <cmath>

#include "core/data/synthetic_plan.h"

namespace olrank {
namespace {

/// The highest level, relative to the largest score that is known to be taken.
constexpr double kReach = 0.9;

double dot(std::span<const double> x, std::span<const double> y) {
  double sum = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
  return sum;
}

}  // namespace

RealisableTarget::RealisableTarget(const SyntheticSource& source)
    : source_(source), lowest_(source.features), highest_(source.features) {
  RngStream stream(key_of_part(source, kSyntheticPlanPart), 0);
  const auto features = static_cast<std::size_t>(source.features);
  hidden_.resize(features * static_cast<std::size_t>(std::max<std::int64_t>(1, source.units)));
  for (std::size_t at = 0; at < hidden_.size(); at += features)
    stream.unit_vector(std::span(hidden_).subspan(at, features));
  if (source.units == 0) {
    highest_ = hidden_;
    for (std::size_t k = 0; k < features; ++k) lowest_[k] = -hidden_[k];
  } else {
    constexpr int kSample = 4096;
    std::vector<double> x(features);
    double low = 0.0;
    double high = 0.0;
    for (int i = 0; i < kSample; ++i) {
      stream.unit_vector(x);
      const double score = unscaled(x);
      if (score < low) lowest_ = x;
      if (score > high) highest_ = x;
      low = std::min(low, score);
      high = std::max(high, score);
    }
  }
  const double most = std::min(unscaled(highest_), -unscaled(lowest_));
  scale_ = level(source.docs - 1) / (kReach * most);
}

double RealisableTarget::unscaled(std::span<const double> x) const {
  if (source_.units == 0) return dot(hidden_, x);
  double sum = 0.0;
  double sign = 1.0;
  for (std::size_t at = 0; at < hidden_.size(); at += x.size()) {
    sum += sign * std::max(0.0, dot(std::span(hidden_).subspan(at, x.size()), x));
    sign = -sign;
  }
  return sum;
}

double RealisableTarget::at(std::span<const double> x) const {
  return scale_ * unscaled(x);
}

double RealisableTarget::level(std::int64_t grade) const {
  return (static_cast<double>(grade) - 0.5 * static_cast<double>(source_.docs - 1)) * source_.gap;
}

void RealisableTarget::draw(RngStream& stream, std::int64_t grade, std::span<double> x) const {
  std::vector<double> start(x.size());
  stream.unit_vector(start);
  const double wanted = level(grade);
  const bool rises = at(start) < wanted;
  const std::vector<double>& end = rises ? highest_ : lowest_;
  double near = 0.0;  // the share of `end`
  double far = 1.0;
  constexpr int kHalvings = 60;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = 0.5 * (near + far);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = (1.0 - middle) * start[k] + middle * end[k];
    const double length = std::sqrt(dot(x, x));
    for (double& value : x) value /= length;
    ((at(x) < wanted) == rises ? near : far) = middle;
  }
}

}  // namespace olrank
