#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/device/network_spec.h"
#include "core/device/round.h"
#include "core/io/state_archive.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/stage_clock.h"

namespace olrank {

/// One network, or N side by side, that live on a device with their data, covariance and history. A round
/// copies orders down and pairs up.
///
/// Calls start work; only those that return a result wait for it. The next call that waits validates the
/// latest training: one that failed is undone and repeated with half the step until it holds, before the
/// call returns anything. Training that nothing saves is a NumericError of that call; a failing device is a
/// CudaError.
class DeviceNetwork {
 public:
  DeviceNetwork() = default;
  virtual ~DeviceNetwork() = default;
  DeviceNetwork(const DeviceNetwork&) = delete;
  DeviceNetwork& operator=(const DeviceNetwork&) = delete;

  /// Scores a query's documents and finds their certain orders.
  virtual DeviceOrders score_query(DeviceQuery query) = 0;
  /// Scores several queries that are handed over, with one wait for all.
  virtual std::span<const DeviceScores> score_queries(std::span<const DeviceQuery> queries) = 0;
  /// The scores of the query of the latest score_query(), and its w² unless that span is empty.
  virtual void describe(std::span<float> scores, std::span<double> width_sq) = 0;
  /// Compares the widths of the query of the latest score_query() with those of the shadow.
  virtual DeviceComparison compare(ExecutionContext& context, std::span<const std::int32_t> shown) = 0;
  /// Waits for the latest update, and validates it as other calls that wait do.
  virtual void settle() = 0;
  /// The update may have no pairs: networks with noise then train again.
  virtual void learn(const DeviceUpdate& update) = 0;
  /// The steps σ_t of the latest training, one per member; empty for mini-batches.
  virtual std::vector<double> steps() = 0;

  /// Whether there is a full covariance in dual form, which decides or is the shadow.
  virtual bool has_dual_form() const = 0;
  /// Whether a full covariance grows without a second copy of itself.
  virtual bool grows_in_place() const = 0;
  /// Switches the full covariance from the dual to the primal form.
  virtual void switch_to_primal() = 0;
  virtual DeviceHealth health() = 0;

  /// Starts scoring documents with the current parameters while the following rounds run.
  virtual void begin_scores(FeatureMatrix docs) = 0;
  virtual bool scores_ready() = 0;
  /// The scores of the latest begin_scores(); waits.
  virtual void finish_scores(std::span<float> scores) = 0;
  virtual std::vector<float> theta() = 0;  // [members × p]
  /// Adds the seconds of the stages that have been waited for.
  virtual void add_seconds(StageClock& clock) = 0;

  /// Everything but the history, which the host keeps.
  virtual void save(StateWriter& state) = 0;
  virtual void load(StateReader& state, const DeviceHistory& history) = 0;
};

/// Throws NotBuiltWithCuda, or CudaError if the device is not available.
std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec& spec);

}  // namespace olrank
