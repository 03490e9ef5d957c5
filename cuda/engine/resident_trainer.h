#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/device/network_spec.h"
#include "core/error.h"
#include "core/interface.h"
#include "core/io/state_archive.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "cuda/engine/resident_history.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Trains the parameters on the device. Trainings are started without waiting; the next call that waits
/// reads the outcome.
class ResidentTrainer : public Interface {
 public:
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

/// Trains on full batches, or throws InvalidArgument if the spec demands one kernel where that is
/// impossible. The spec's spans are read now only. `theta` [members × p] is trained, in the stream of
/// `products`, which must outlive the trainer.
std::unique_ptr<ResidentTrainer> make_stacked_trainer(const DeviceNetworkSpec& spec, float* theta,
                                                      Products& products);

/// The sizes that fit batches of `batch` pairs, and the last, smaller one, of `observed` > 0 pairs.
TrainingSizes batch_sizes(const NetworkShape& shape, std::int64_t batch, std::int64_t observed);

/// Trains by shuffled mini-batches, as make_stacked_trainer() does otherwise; the spec has mini-batches.
std::unique_ptr<ResidentTrainer> make_batch_trainer(const DeviceNetworkSpec& spec, float* theta,
                                                    Products& products);

/// Work that is recorded once and then started by one call. If it cannot be recorded, for which other users
/// of the driver can be the reason, it is started as it is.
class RecordedWork {
 public:
  /// Records what `work` starts in this stream, unless that is done or fails, or the thread's work waits
  /// for that of others. Returns whether it is recorded.
  bool record(Stream stream, FunctionRef<void()> work) {
    if (Seat::of_thread() != nullptr) return false;
    if (!current_) try_to_record(stream, work);
    return current_;
  }
  /// Starts what was recorded, or else `work` itself.
  void start(Stream stream, FunctionRef<void()> work) const {
    if (current_ && Seat::of_thread() == nullptr) {
      graph_.start(stream);
    } else {
      work();
    }
  }

  /// Starts `work`, the first time without recording it: what is done once needs no graph, and kernels must
  /// be loaded before a graph is recorded.
  void run(Stream stream, FunctionRef<void()> work) {
    if (has_run_) {
      record(stream, work);
      start(stream, work);
    } else {
      work();
      has_run_ = true;
    }
  }

  /// The recording is out of date: the next record() replaces it.
  void forget() { current_ = has_run_ = false; }

 private:
  void try_to_record(Stream stream, FunctionRef<void()> work) {
    try {
      graph_.record(stream, work);
      current_ = true;
    } catch (const CudaError& error) {
      static std::atomic_flag said;
      if (!said.test_and_set()) {
        log_warning(
            "Recording work of a GPU failed: {} It runs unrecorded, which is slower, and recording is "
            "tried again at every training.",
            error.what());
      }
    }
  }

  Graph graph_;
  bool current_ = false;
  bool has_run_ = false;  // since forget()
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
