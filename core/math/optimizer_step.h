#pragma once

#include <cmath>
#include <cstdint>

#include "core/math/portable_exp.h"

// One parameter's step of each optimizer, in double.
namespace olrank {

namespace optimizer {
constexpr double kMomentum = 0.9;  // Nesterov's
constexpr double kBeta1 = 0.9;     // Adam's
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
}  // namespace optimizer

/// θ − step · gradient.
OLRANK_HOST_DEVICE inline double gradient_descent_element(double step, double gradient, double theta) {
  return theta - step * gradient;
}

/// Gradient descent with weight decay.
OLRANK_HOST_DEVICE inline double decayed_element(double step, double decay, double gradient,
                                                 double position) {
  return position - step * (gradient + decay * position);
}

/// Nesterov's momentum. θ is the point ahead of `position`, where the gradient is taken.
struct NesterovElement {
  double velocity;
  double position;
  double theta;
};

OLRANK_HOST_DEVICE inline NesterovElement nesterov_element(double step, double gradient, double position,
                                                           double theta) {
  const double moved = gradient_descent_element(step, gradient, theta);
  const double velocity = moved - position;
  return {velocity, moved, moved + optimizer::kMomentum * velocity};
}

/// The n-th step takes these rates in addition to the gradient. The corrections are Adam's.
struct StepRates {
  double first_correction = 1.0;   // 1 − β₁ⁿ
  double second_correction = 1.0;  // 1 − β₂ⁿ
  double decay = 0.0;              // of the position; decay · position is added to the gradient
};

/// Steps are numbered from 1.
inline StepRates step_rates(std::int64_t number, double decay) {
  const auto power = static_cast<double>(number);
  return {1.0 - std::pow(optimizer::kBeta1, power), 1.0 - std::pow(optimizer::kBeta2, power), decay};
}

/// Running means of a gradient and of its square, and θ in double.
struct AdamElement {
  double first;
  double second;
  double position;
};

/// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1.
OLRANK_HOST_DEVICE inline AdamElement adam_element(double step, const StepRates& rates, double gradient,
                                                   const AdamElement& before) {
  const double slope = gradient + rates.decay * before.position;
  const double first = optimizer::kBeta1 * before.first + (1.0 - optimizer::kBeta1) * slope;
  const double second = optimizer::kBeta2 * before.second + (1.0 - optimizer::kBeta2) * slope * slope;
  const double scale = std::sqrt(second / rates.second_correction) + optimizer::kEpsilon;
  const double moved = before.position - step * (first / rates.first_correction) / scale;
  return {first, second, moved};
}

}  // namespace olrank

// The step sizes of full-batch training on Σ cross-entropy + ½mλ ‖θ − θ₀‖², for CPU and device.
namespace olrank {

/// ½mλ, with the network's width m, or 1 if the prior is not scaled.
inline double prior_weight_of(double width, double lambda) {
  return 0.5 * width * lambda;
}

/// mλ: the prior's curvature, the same in every direction.
OLRANK_HOST_DEVICE inline double prior_curvature(double prior_weight) {
  return 2.0 * prior_weight;
}

/// σ = η/(κ + mλ), κ the largest curvature of the data term: η ≤ 1 keeps steps stable.
OLRANK_HOST_DEVICE inline double stable_step(double rate, double data_curvature, double prior) {
  return rate / (data_curvature + prior);
}

/// η of a training that `trainings` others came before.
inline double decayed_rate(double rate, double decay, std::int64_t trainings) {
  return rate * std::pow(decay, static_cast<double>(trainings));
}

/// Whether κ, found with `found_at` observed pairs (0: never), is found again: once the history has grown
/// by a tenth.
inline bool curvature_is_stale(std::int64_t observed, std::int64_t found_at) {
  return found_at == 0 || 10 * observed >= 11 * found_at;
}

/// Whether documents outgrow those before them so far that κ is found again, from the largest ‖x‖²: the
/// curvature grows with it, and a step that rests on smaller documents may explode.
inline bool documents_outgrow(double largest_before, double largest_now) {
  return largest_before > 0.0 && largest_now > 4.0 * largest_before;
}

/// A training that fails is undone and repeated with half the step, at most this often. The second repeat
/// finds κ again: one that was found before a list with much larger features is no bound.
inline constexpr int kMostRepeats = 40;
inline constexpr int kRepeatThatFindsCurvature = 2;

/// η of the `repeats`-th repeat of a training.
inline double repeated_rate(double rate, int repeats) {
  return std::ldexp(rate, -repeats);
}

/// Whether a loss has left the range that steps of a stable size reach. Label noise makes the loss of a
/// network unbounded below, and LambdaRank's gradients do not belong to one loss, so a fall and a rise may
/// both be an explosion. Steps that are short enough never cause one.
inline bool loss_has_exploded(double began, double ended, double pairs) {
  constexpr double kMostPerPair = 1e6;
  return !(std::fabs(ended) <= 2.0 * std::fabs(began) + kMostPerPair * pairs);
}

/// Whether a training on `pairs` observed pairs has to be undone. The first try fails with any rise of the
/// loss. A repeat may raise it somewhat, as momentum and a network's kinks do, but not double it.
/// `follows_loss`: the gradients are those of this loss.
inline bool training_failed(double began, double ended, double pairs, bool follows_loss, int repeats) {
  if (!std::isfinite(began) || loss_has_exploded(began, ended, pairs)) return true;
  if (!follows_loss) return false;
  if (repeats == 0) return !(ended <= began);
  return ended > began + (std::fabs(began) + pairs);
}

/// Tells that the mean loss of a mini-batch has exploded in a training that starts at θ₀.
OLRANK_HOST_DEVICE inline bool batch_loss_has_exploded(double loss) {
  return !(std::fabs(loss) <= 1e15);
}

/// Whether a smaller step may help.
inline bool can_repeat(double began, int repeats) {
  return std::isfinite(began) && repeats < kMostRepeats;
}

}  // namespace olrank

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
