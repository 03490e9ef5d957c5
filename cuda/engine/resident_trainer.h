#pragma once

#include <cstdint>

#include "core/io/state_archive.h"
#include "cuda/engine/resident_history.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Trains the parameters on the device. Trainings are started without waiting; the next call that waits
/// reads the outcome.
class ResidentTrainer {
 public:
  ResidentTrainer() = default;
  virtual ~ResidentTrainer() = default;
  ResidentTrainer(const ResidentTrainer&) = delete;
  ResidentTrainer& operator=(const ResidentTrainer&) = delete;

  /// Starts a training on the current history, or on its sample.
  virtual void train(const ResidentHistory& history) = 0;
  /// The outcome of a member's latest training: a number, and the loss before and after.
  struct Outcome {
    double number = 0.0;
    double began = 0.0;
    double ended = 0.0;
  };
  /// Whether a training on `pairs` observed pairs, repeated `repeats` times so far, has to be undone, and
  /// whether a smaller step may help.
  virtual bool has_failed(const Outcome& outcome, double pairs, int repeats) const = 0;
  virtual bool can_repeat(const Outcome& outcome, int repeats) const = 0;
  /// Undoes a member's latest training and starts its `repeats`-th repeat.
  virtual void repeat(const ResidentHistory& history, std::int64_t member, int repeats) = 0;
  /// After a training that no repeat could save: undoes it and finds the step that caused it. Waits.
  struct Divergence {
    std::int64_t step = 0;
    double loss = 0.0;
  };
  virtual Divergence find_divergence(const ResidentHistory& history) = 0;

  /// The outcome of the latest training, on the device: per member a number, the loss before and the loss
  /// after, [kOutcomes × members].
  virtual const double* outcome() const = 0;
  /// Whether those numbers are the steps of the members.
  virtual bool has_steps() const = 0;
  static constexpr std::int64_t kOutcomes = 3;

  virtual std::int64_t bytes() const = 0;  // on the device
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
