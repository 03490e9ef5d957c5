#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/explore/certainty_policy.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/precision.h"
#include "core/ops/relu_network.h"
#include "core/random/rng_stream.h"
#include "core/runtime/stage_clock.h"

// Networks that live on a device: data, parameters, covariance and history stay there, and a round brings
// down orders and takes up pairs.
namespace olrank {

/// How a device keeps what is known about θ.
enum class DeviceCovariance { kDual, kPrimal, kDiagonal, kDiagonalOfInverse, kNone };

/// How the members of an ensemble are trained side by side: each in a stream of its own, all as one batch,
/// or as measures faster.
enum class MemberSchedule { kAuto, kStreams, kBatched };

/// What networks on a device are made of. Whatever it points to has to outlive the making, `train` and
/// `eval_docs` the networks.
struct DeviceNetworkSpec {
  int device = 0;  // as CUDA counts the visible ones
  NetworkShape shape;
  std::int64_t members = 1;
  std::span<const float> first;  // θ₀, [members × p]

  FeatureMatrix train;         // whose queries are asked
  std::int64_t most_docs = 0;  // of a query
  FeatureMatrix eval_docs;     // whose scores are asked again and again

  // Certain orders: by widths, or by the members' votes where there is no covariance to speak of.
  bool by_vote = false;
  DeviceCovariance covariance = DeviceCovariance::kNone;
  double lambda = 1.0;
  double scale = 1.0;  // s in A = λI + s Σ g gᵀ
  /// A full one in this form, kDual or kPrimal, beside a covariance of another kind; decides nothing.
  std::optional<DeviceCovariance> shadow;
  CertaintyPolicy certainty;

  // Training: J steps on Σ cross-entropy + prior_weight ‖θ − θ₀‖².
  Optimizer optimizer = Optimizer::kGradientDescent;
  std::int64_t steps = 20;
  double learning_rate = 1.0;
  double learning_rate_decay = 1.0;
  double prior_weight = 0.0;
  Precision precision = Precision::kFloat32;  // of its products; J steps are judged in float32
  double stop_gradient_norm = 0.0;            // a pair; ends a training before its J steps. 0: never
  /// Instead: from θ₀ each time, passes over the history in shuffled batches, on a batch's mean
  /// cross-entropy with a decay of θ.
  struct MiniBatches {
    std::int64_t epochs = 20;
    std::int64_t batch = 1024;
    double decay = 0.0;  // of which a step has the n-th part
  };
  std::optional<MiniBatches> mini_batches;
  bool weigh_by_ndcg = false;             // LambdaRank
  double noise = 0.0;                     // ν of the labels, drawn anew every round
  std::span<const PhiloxKey> noise_keys;  // [members] where there is noise
  MemberSchedule schedule = MemberSchedule::kAuto;
};

/// A query of the training part.
struct DeviceQuery {
  std::int64_t first_doc = 0;
  std::int64_t docs = 0;

  friend bool operator==(const DeviceQuery&, const DeviceQuery&) = default;
};

/// Orders of a query's documents; valid until the next call.
struct DeviceOrders {
  std::span<const std::int32_t> by_score;  // docs, best first
  std::span<const std::uint64_t> certain;  // rows of an OrderBits
};

/// What decided about a query's documents, and what the shadow knows of those that were shown; valid until
/// the next call. Of each M, as w² is made of it, the lower triangle.
struct DeviceComparison {
  CertaintyRule rule;
  std::span<const float> scores;    // [docs]
  std::span<const double> own_m;    // [docs × docs]
  std::span<const double> exact_m;  // [shown × shown]
};

/// What a round adds to the history, whose indices the host keeps.
struct DeviceLesson {
  struct Term {
    std::int32_t index = 0;
    PairTerm term;
  };

  std::uint32_t round = 0;
  DeviceQuery query;
  std::span<const PreferencePair> pairs;
  std::int64_t observed = 0;               // n, these pairs included
  std::span<const std::int64_t> new_docs;  // numbers within the training part
  std::span<const Term> terms;             // new and changed ones
  // Of mini-batches and LambdaRank.
  std::span<const PairObservation> observations;
  // Of mini-batches alone: the numbers of all observations, shuffled for each epoch of each member.
  std::span<const std::int32_t> order;
  // Of LambdaRank alone.
  std::span<const std::int32_t> examined;  // rows of the history, in the order shown
  std::span<const std::uint8_t> clicks;
};

/// A whole history, to go on from.
struct DeviceHistory {
  FeatureMatrix docs;  // the distinct ones
  std::span<const PairTerm> terms;
  std::int64_t observed = 0;
  std::span<const PairObservation> observations;  // of mini-batches and LambdaRank
  // Of LambdaRank alone.
  std::span<const std::int64_t> doc_numbers;
  std::span<const std::int32_t> first_doc;   // [lists + 1], into `examined`
  std::span<const std::int32_t> first_pair;  // [lists + 1], into `observations`
  std::span<const std::int32_t> examined;
  std::span<const std::uint8_t> clicks;
};

/// The health of the covariance.
struct DeviceHealth {
  double drift = 0.0;
  std::int64_t negative_widths = 0;
  std::int64_t bytes = 0;
  std::int64_t device_bytes = 0;  // of everything
};

/// One network, or N side by side. Calls start work and wait only where they return what it found. Training
/// that raised the loss is found when somebody waits next, and is then made again with half the step before
/// anything is told. Errors of training are NumericErrors of that call; what failed on the device is a
/// CudaError.
class DeviceNetwork {
 public:
  DeviceNetwork() = default;
  virtual ~DeviceNetwork() = default;
  DeviceNetwork(const DeviceNetwork&) = delete;
  DeviceNetwork& operator=(const DeviceNetwork&) = delete;

  virtual DeviceOrders look(DeviceQuery query) = 0;
  /// Scores of the query looked at last, and its w² where the span is not empty.
  virtual void describe(std::span<float> scores, std::span<double> width_sq) = 0;
  /// Of the query looked at last, where there is a shadow.
  virtual DeviceComparison compare(std::span<const std::int32_t> shown) = 0;
  /// Whether what the latest comparison said of exact widths has its digits. Where it has not, the shadow
  /// is made anew, once between two good answers.
  virtual void judge_shadow(bool good) = 0;
  virtual void learn(const DeviceLesson& lesson) = 0;
  /// Of the latest training, one a member; none of mini-batches.
  virtual std::vector<double> steps() = 0;

  /// Of the full covariance, whether it decides or is the shadow: "dual" or "primal"; empty without one.
  virtual std::string_view full_form() const = 0;
  /// Takes it from pairs to A⁻¹.
  virtual void go_primal() = 0;
  virtual DeviceHealth health() = 0;

  /// Begins to score documents with the parameters as they stand, beside whatever follows.
  virtual void begin_scores(FeatureMatrix docs) = 0;
  virtual bool scores_ready() = 0;
  /// What the latest begin_scores() found.
  virtual void finish_scores(std::span<float> scores) = 0;
  virtual std::vector<float> theta() = 0;  // [members × p]
  /// Adds the seconds of what was waited for.
  virtual void add_seconds(StageClock& clock) = 0;

  /// All but the history, which the host keeps.
  virtual void save(StateWriter& state) = 0;
  virtual void load(StateReader& state, const DeviceHistory& history) = 0;
};

/// Throws NotBuiltWithCuda, or CudaError where the device cannot be had.
std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec& spec);

}  // namespace olrank
