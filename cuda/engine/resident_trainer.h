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

  /// Starts a training on the current history.
  virtual void train(const ResidentHistory& history) = 0;
  /// Undoes the latest training of a member whose loss rose and repeats it with half the step. Returns
  /// false, and does nothing, if a rising loss is no sign of a failed training.
  virtual bool repeat(const ResidentHistory& history, std::int64_t member) = 0;
  /// After a training that ended with a non-finite loss: undoes it and finds the step that caused it.
  /// Waits.
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
