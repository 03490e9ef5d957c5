#pragma once

#include <cstdint>

#include "core/io/state_archive.h"
#include "cuda/engine/resident_history.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How parameters on the device follow the history. Trainings are started and not waited for; how one went
/// is in its outcome, for whoever waits next.
class ResidentTrainer {
 public:
  ResidentTrainer() = default;
  virtual ~ResidentTrainer() = default;
  ResidentTrainer(const ResidentTrainer&) = delete;
  ResidentTrainer& operator=(const ResidentTrainer&) = delete;

  /// Starts a training on the history as it stands.
  virtual void train(const ResidentHistory& history) = 0;
  /// For a member that ended with a higher loss than it began with: undoes its latest training and makes it
  /// again with half the step. False, and nothing is done, where a rise says nothing.
  virtual bool repeat(const ResidentHistory& history, std::int64_t member) = 0;
  /// After a training that ended with a loss that is no number: undoes it, and finds where it went. Waits.
  struct Divergence {
    std::int64_t step = 0;
    double loss = 0.0;
  };
  virtual Divergence find_divergence(const ResidentHistory& history) = 0;

  /// Of the latest training, on the device: a number of each member, its loss before and its loss after.
  virtual const double* outcome() const = 0;
  /// Whether those numbers are the sizes of the members' steps.
  virtual bool tells_steps() const = 0;
  static constexpr std::int64_t kOutcomes = 3;

  virtual std::int64_t bytes() const = 0;  // on the device
  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
