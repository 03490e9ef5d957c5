#pragma once

#include <cmath>
#include <cstdint>

#include "core/math/host_device.h"

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
