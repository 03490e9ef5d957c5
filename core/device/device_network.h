#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/device/network_spec.h"
#include "core/explore/certain_orders.h"
#include "core/interface.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/online/retraining.h"
#include "core/ops/list_loss.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/relu_network.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"

// Host and device exchange these types in a round.
namespace olrank {

/// A query of the training part, or one whose documents are handed over.
struct DeviceQuery {
  std::int64_t first_doc = 0;  // within the training part
  std::int64_t docs = 0;
  const float* handed = nullptr;  // [docs × d], read during the call; null: of the training part
  std::uint64_t there = 0;        // DeviceDocs::number(), where these lie on the device; 0: on the host

  friend bool operator==(const DeviceQuery&, const DeviceQuery&) = default;
};

/// The orders of a query's documents; valid until the next call.
struct DeviceOrders {
  std::span<const std::int32_t> by_score;  // docs, best first
  std::span<const std::uint64_t> certain;  // rows of an OrderBits
};

/// A list is made from these scores of a query among several; they are valid until the next call.
struct DeviceScores {
  DeviceOrders orders;
  std::span<const float> scores;  // [docs], of an ensemble their means
  std::int32_t bad = -1;          // document whose score is not a number
  std::int64_t lost = 0;          // squared widths that rounding destroyed
};

/// The scores and widths that decided about the shown documents, and their exact widths by the shadow;
/// valid until the next call.
struct DeviceComparison {
  CertaintyRule rule;
  std::span<const double> scores;    // [shown]
  std::span<const double> own_sq;    // w², [shown × shown]
  std::span<const double> exact_sq;  // w² by the shadow, [shown × shown]
};

/// The pairs that a round trains on in the place of the whole history.
struct DeviceSample {
  std::span<const std::int64_t> docs;  // rows of the history
  std::span<const PairTerm> terms;     // of their places in `docs`; weights and labels come from `sources`
  std::span<const SampledTerm> sources;
};

/// An update is what a round adds to the history and what it then trains on. The host keeps the index of
/// documents and pairs, and draws samples.
struct DeviceUpdate {
  struct Term {
    std::int32_t index = 0;
    PairTerm term;
  };

  std::uint32_t round = 0;
  /// In which round the noise of labels was drawn: this one where the whole history is trained on.
  std::uint32_t noise_round = 0;
  TrainingExtent extent = TrainingExtent::kHistory;
  /// [members × p]: where a training on the whole history starts; empty: at the current parameters.
  std::span<const float> start;
  DeviceSample sample;  // for kSample
  DeviceQuery query;
  std::span<const PreferencePair> pairs;
  std::int64_t observed = 0;               // n, these pairs included
  std::span<const std::int64_t> new_docs;  // numbers within the training part, or places in a handed query
  bool docs_outgrow = false;               // whether they make κ stale, see core/math/optimizer_step.h
  std::span<const Term> terms;             // new and changed ones
  std::span<const PairObservation> observations;  // for mini-batches and LambdaRank
  /// For mini-batches: the numbers of all observations, shuffled for each epoch of each member.
  std::span<const std::int32_t> order;
  // For LambdaRank:
  std::span<const std::int64_t> doc_numbers;  // that name the new documents
  std::span<const std::int32_t> examined;     // rows of the history, in the order shown
  std::span<const std::uint8_t> clicks;
};

/// A whole history, to resume from.
struct DeviceHistory {
  FeatureMatrix docs;  // the distinct ones
  std::span<const PairTerm> terms;
  std::int64_t observed = 0;
  std::span<const PairObservation> observations;  // for mini-batches and LambdaRank
  // For LambdaRank:
  std::span<const std::int64_t> doc_numbers;
  std::span<const std::int32_t> first_doc;   // [lists + 1], into `examined`
  std::span<const std::int32_t> first_pair;  // [lists + 1], into `observations`
  std::span<const std::int32_t> examined;
  std::span<const std::uint8_t> clicks;
};

/// The numerical health of the covariance, and its memory.
struct DeviceHealth {
  double drift = 0.0;
  std::int64_t negative_widths = 0;
  std::int64_t bytes = 0;         // of the covariance
  std::int64_t device_bytes = 0;  // of everything on the device
};

/// One network, or N side by side, that live on a device with their data, covariance and history. A round
/// copies orders down and pairs up.
///
/// Calls start work; only those that return a result wait for it. The next call that waits validates the
/// latest training: one that failed is undone and repeated with half the step until it holds, before the
/// call returns anything. Training that nothing saves is a NumericError of that call; a failing device is a
/// CudaError.
class DeviceNetwork : public Interface {
 public:
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

/// The place of the calling thread in a batch.
class DeviceSeat : public Interface {};

/// Trials on one device in lock-step: the work that threads with a seat start for their networks begins
/// when they wait for it, and what several of them start alike begins as one. Every network computes the
/// bits that it computes alone.
class DeviceBatch : public Interface {
 public:
  /// For the calling thread, which makes, uses and destroys its networks within it; null where it has one.
  virtual std::unique_ptr<DeviceSeat> take_seat() = 0;
};

/// For so many trials at once. Throws NotBuiltWithCuda, or CudaError if the device is not available.
std::shared_ptr<DeviceBatch> make_device_batch(int device, std::int64_t seats);

/// Documents that others keep in the memory of a device, row by row.
struct GivenDocs {
  const float* values = nullptr;
  std::int64_t docs = 0;
  std::int64_t features = 0;
  std::int64_t stride = 0;  // values from one row to the next
};

/// The inputs of a query's documents in the memory of a device, where nothing changes them.
class DeviceDocs : public Interface {
 public:
  virtual const float* values() const = 0;  // [docs × features]
  /// Different from that of all others of this process, from 1; an address may come again.
  virtual std::uint64_t number() const = 0;
  /// Copies these rows to their places in `inputs` [docs × features] on the host; waits.
  virtual void copy_rows(std::span<const std::int32_t> rows, float* inputs) const = 0;
};

/// Makes inputs of documents that are on a device already. Any number of threads may let go of what it has
/// made; take() is for one at a time.
class DeviceIntake : public Interface {
 public:
  struct Taken {
    std::shared_ptr<const DeviceDocs> docs;
    std::int64_t not_finite = -1;  // the first such value, of docs × features
    std::int64_t beyond = -1;      // the first one beyond ±limit, where no value is infinite or NaN
  };
  /// Copies the documents, each column scaled to its range if so asked, as FittedNormaliser does; waits.
  virtual Taken take(const GivenDocs& given, bool scale, float limit) = 0;
  /// The cudaStream_t in which it reads what is given: the work that writes that has to be ahead in it.
  virtual void* stream() const = 0;
};

/// Throws NotBuiltWithCuda, or CudaError if the device is not available.
std::shared_ptr<DeviceIntake> make_device_intake(int device);

/// Queries with grades on a device, and the network that is fitted to them. Spans and documents have to
/// outlive what is made of this.
struct DeviceListsSpec {
  int device = 0;  // as CUDA numbers the visible ones
  NetworkShape shape;
  ListLossForm form;
  const Dataset* docs = nullptr;          // and the weights of its queries
  std::span<const std::uint8_t> grades;   // of every document
  std::span<const std::int64_t> offsets;  // [queries + 1], of the documents
  /// The documents may take so many bytes on the device. Where they take more, each batch of them travels
  /// there when it is needed, while the one before it is computed; no result depends on it.
  std::int64_t bytes_for_docs = 0;
};

/// Losses of lists with labels and their gradients by θ, on a device. Parameters are the host's: every call
/// takes them there and waits once, so that what is saved is what the host has. Sums go over blocks of
/// whole queries whose borders depend on the queries alone. Used by one thread at a time.
class DeviceLists : public Interface {
 public:
  /// The sum of the losses of these queries, times their relative_weights(). `gradient` [p] gets its
  /// gradient unless it is empty.
  virtual double losses(std::span<const float> theta, std::span<const std::int64_t> queries,
                        std::span<double> gradient) = 0;
  /// One pass of Adam, as adam_pass() of the host makes it; returns the sum of the losses that were met.
  virtual double adam_pass(const AdamPass& pass, const AdamState& state) = 0;
  /// The scores of all documents; returns the sum of their lists' losses, without weights.
  virtual double score(std::span<const float> theta, std::span<float> scores) = 0;
  /// Whether the documents stay on the device.
  virtual bool docs_stay() const = 0;
};

/// Throws NotBuiltWithCuda, or CudaError if the device is not available.
std::unique_ptr<DeviceLists> make_device_lists(const DeviceListsSpec& spec);

/// Device memory that grows in place does so by this many bytes at least. Planning and the device agree on
/// it.
inline constexpr std::int64_t kMemoryChunk = std::int64_t{8} << 20;

}  // namespace olrank
