#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/data/feature_matrix.h"
#include "core/device/posterior_spec.h"
#include "core/device/training_kernel.h"
#include "core/explore/certainty_policy.h"
#include "core/online/retraining.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/relu_network.h"
#include "core/random/rng_stream.h"

namespace olrank {

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

}  // namespace olrank
