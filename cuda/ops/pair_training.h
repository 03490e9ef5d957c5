#pragma once

#include <cstdint>

#include "core/ops/pair_training.h"
#include "core/random/rng_stream.h"
#include "cuda/ops/tangent_factors.h"

// The device version of core/ops/pair_training.h, for one network or N side by side. Values that change
// between replays of a captured graph (labels, round, step size) are read from device memory. Sizes may be
// capacities: terms whose first document is −1 and documents without a term add nothing.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The terms of each document, in order, so that a document's derivative is one sum in a fixed order,
/// without atomics.
struct PairIncidence {
  std::int32_t* offsets = nullptr;  // [docs + 1]
  std::int32_t* ends =
      nullptr;  // [2 · terms]: twice the term's number, plus 1 if the document is its second
};

/// Workspace of find_incidence(), in 32-bit words.
std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms);

/// Indexes terms among `docs` documents; it must be called again after terms were added. A term whose first
/// document is −1 is padding.
void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence);

/// The history that networks are trained on.
struct PairHistoryView {
  const float* features = nullptr;  // [docs × d], the distinct documents
  std::int64_t docs = 0;
  const PairTerm* terms = nullptr;
  std::int64_t count = 0;
  PairIncidence incidence;
  const double* labels = nullptr;   // [members × count] in place of the terms' own; may be null
  const double* weights = nullptr;  // [members × count] in place of the terms' own; may be null
  // Numbers from one member's documents to the next's, and terms; 0: all members have the same.
  std::int64_t features_step = 0;
  std::int64_t terms_step = 0;
};

/// PairObjective of core/ops; `centre` and `linear` [members × p] may be null.
struct StackedObjective {
  double data_scale = 1.0;
  double prior_weight = 0.0;
  const float* centre = nullptr;
  const double* linear = nullptr;
};

/// The workspace of training, with sizes by training_sizes().
struct TrainingWorkspace {
  float* rows = nullptr;     // [members × docs × training_row_stride()]
  float* scores = nullptr;   // [members × docs]
  float* partial = nullptr;  // gradients, summed over parts of the documents
  double* losses = nullptr;  // losses, summed over parts of the terms and parameters
};

struct TrainingSizes {
  std::int64_t rows = 0;
  std::int64_t scores = 0;
  std::int64_t partial = 0;
  std::int64_t losses = 0;
};

/// Distance between rows of tangent factors in a training's workspace, padded so that products can read
/// them in fours.
std::int64_t training_row_stride(const NetworkShape& shape);

TrainingSizes training_sizes(const NetworkShape& shape, std::int64_t members, std::int64_t docs,
                             std::int64_t terms);

/// The most that TrainingSizes::partial is for any number of documents up to `docs`: fewer documents may be
/// split into more parts.
std::int64_t most_partial_sums(const NetworkShape& shape, std::int64_t members, std::int64_t docs);

/// labels [members × count] by noisy_labels(), with the CPU's draws and bits; `noise` is ν. keys [members]
/// and the round are on the device.
void perturb_labels(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t members,
                    const PhiloxKey* keys, const std::uint32_t* round, double noise, double* labels);

/// The forward pass of the history: scores, and the hidden units for the gradients.
void forward_history(Products& products, const NetworkStack& stack, const PairHistoryView& history,
                     const TrainingWorkspace& workspace);

/// losses [members] at the parameters of the latest forward_history().
void pair_losses(Stream stream, const NetworkStack& stack, const PairHistoryView& history,
                 const StackedObjective& objective, const TrainingWorkspace& workspace, double* losses);

/// Outputs of pair_gradients(); either or both may be set.
struct GradientUse {
  double* gradient = nullptr;    // [members × p]
  float* theta = nullptr;        // [members × p], moved by one step of gradient descent
  const double* step = nullptr;  // [members], σ_t
};

/// Gradients at the parameters of the latest forward_history(), which may be moved in place.
void pair_gradients(Products& products, const NetworkStack& stack, const PairHistoryView& history,
                    const StackedObjective& objective, const TrainingWorkspace& workspace,
                    const GradientUse& use);

/// gradient [p] = scale · Σ_i slopes[i] ∇_θ f(x_i; θ) of one network, at the parameters of the latest
/// forward_history() of these documents, whose terms are not read. The device version of
/// core/ops/gradient_products.h.
void score_gradient(Products& products, const NetworkStack& stack, const PairHistoryView& documents,
                    const double* slopes, double scale, const TrainingWorkspace& workspace,
                    double* gradient);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
