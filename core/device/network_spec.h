#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/covariance/covariance_checks.h"
#include "core/data/dataset.h"
#include "core/explore/certain_orders.h"
#include "core/online/retraining.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/relu_network.h"
#include "core/ops/tangent_factors.h"
#include "core/random/rng_stream.h"
#include "core/settings/enum_names.h"

namespace olrank {

/// A posterior keeps one of these of A⁻¹, on the CPU and on a device.
enum class Covariance { kFull, kInducing, kDiagonal, kDiagonalOfInverse, kNone };

/// How a full covariance is kept: by pairs, by parameters, or by an orthonormal basis of the observed
/// gradients, which only the CPU has and no user asks for. Automatic ones are dual until FormPolicy decides
/// otherwise.
enum class CovarianceForm { kAuto, kDual, kPrimal, kOrthonormal };

template <>
struct EnumNames<Covariance> {
  static constexpr std::array values =
      names_in_order<Covariance>("full", "inducing", "diagonal", "diagonal-of-inverse", "none");
};

template <>
struct EnumNames<CovarianceForm> {
  static constexpr std::array values =
      names_in_order<CovarianceForm>("auto", "dual", "primal", "orthonormal");
};

/// Everything that defines A = λI + s Σ_s g_s g_sᵀ over observed pairs, whose gradients have this shape. A
/// posterior's own spec says in which form it is now.
struct PosteriorSpec {
  TangentShape shape;
  Covariance covariance = Covariance::kFull;
  CovarianceForm form = CovarianceForm::kAuto;  // of the full covariance
  std::int64_t budget = 1000;                   // D, of the inducing covariance
  double lambda = 10.0;                         // λ
  double scale = 1.0;                           // s: 1/m in the paper protocol, 1 in the reference protocol
  CovarianceChecks checks;
  std::int64_t memory = 0;  // bytes that it may use on the host; 0: available_memory()
  bool has_shadow = false;  // shadow() observes the same pairs and decides nothing

  bool is_dual() const {
    return covariance == Covariance::kFull &&
           (form == CovarianceForm::kAuto || form == CovarianceForm::kDual);
  }
  /// The name in messages and saved states: that of a full covariance's form, else that of the structure.
  std::string_view name() const {
    if (covariance != Covariance::kFull) return name_of(covariance);
    return name_of(is_dual() ? CovarianceForm::kDual : form);
  }
  /// The full covariance alongside this one.
  PosteriorSpec shadow() const {
    PosteriorSpec full = *this;
    full.covariance = Covariance::kFull;
    full.has_shadow = false;
    return full;
  }
};

/// How a device takes the J steps of a full-batch training: in one persistent kernel that keeps the
/// documents in shared memory, as a recorded graph of kernels, or persistently wherever that is possible.
enum class TrainingKernel { kAuto, kPersistent, kRecorded };

template <>
struct EnumNames<TrainingKernel> {
  static constexpr std::array values = names_in_order<TrainingKernel>("auto", "persistent", "recorded");
};

/// The documents that networks on a device rank and score. Both matrices must outlive the networks, which
/// share one copy of each on a device.
struct DeviceData {
  FeatureMatrix train;         // the documents of the queries that rounds ask
  std::int64_t most_docs = 0;  // the most documents of a query
  FeatureMatrix eval_docs;     // the documents that are scored at every evaluation
};

/// Which orders count as certain.
struct DeviceCertaintySpec {
  bool by_vote = false;    // all members agree; else by widths
  CertaintyPolicy policy;  // of widths
};

/// Passes over the history in shuffled batches that restart at θ₀ each round, on a batch's mean
/// cross-entropy with weight decay.
struct DeviceMiniBatches {
  std::int64_t epochs = 20;
  std::int64_t batch = 1024;
  double decay = 0.0;  // a step decays by decay/n, n observed pairs
};

/// J steps from the current θ on Σ cross-entropy + prior_weight ‖θ − θ₀‖², or mini-batches instead.
struct DeviceTrainingSpec {
  Optimizer optimizer = Optimizer::kGradientDescent;
  std::int64_t steps = 20;           // J
  double learning_rate = 1.0;        // η
  double learning_rate_decay = 1.0;  // of η, per training
  double prior_weight = 0.0;         // ½mλ
  std::optional<DeviceMiniBatches> mini_batches;
  RetrainingRule retraining;   // the host decides by it; not with mini-batches or LambdaRank
  bool weigh_by_ndcg = false;  // LambdaRank
  TrainingKernel kernel = TrainingKernel::kAuto;
};

/// Noise that the members of an ensemble add to their labels, drawn again at every training on the whole
/// history.
struct DeviceNoiseSpec {
  double deviation = 0.0;           // ν
  std::span<const PhiloxKey> keys;  // [members] unless ν = 0
};

/// Everything that defines networks on a device. Spans are read when the networks are made.
struct DeviceNetworkSpec {
  int device = 0;  // as CUDA numbers the visible ones
  NetworkShape shape;
  std::int64_t members = 1;
  std::span<const float> first;  // θ₀, [members × p]
  DeviceData data;
  PosteriorSpec posterior;
  DeviceCertaintySpec certainty;
  DeviceTrainingSpec training;
  DeviceNoiseSpec noise;
};

/// The most layers of a gradient on a device: their table then still fits into the 4 KB of arguments that
/// every kernel may have.
inline constexpr std::int64_t kMostDeviceLayers = 32;

}  // namespace olrank
