#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/data_settings.h"
#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// How raw feature values become a model's inputs: everything about the training part that this needs, so
/// that a model which carries it can rank raw values by itself.
struct FittedNormaliser {
  Normalisation kind = Normalisation::kNone;
  std::int64_t features = 0;       // of raw data
  std::vector<std::int64_t> kept;  // raw indices of the model's inputs, rising; empty for all of them
  std::vector<double> means;       // [features] by raw index, for zscore kinds
  std::vector<double> scales;      // [features], 1/standard deviation, 0 for a constant feature

  std::int64_t inputs() const { return kept.empty() ? features : std::ssize(kept); }

  /// Normalises one query's raw documents [docs × features] into `inputs` [docs × inputs()], which may
  /// begin where the raw values do.
  void apply(FeatureMatrix raw, float* inputs) const;

  /// A part normalised; its fingerprint is of the normalised content. Does not depend on the threads.
  Dataset apply(const Dataset& raw, ExecutionContext& context) const;

 private:
  /// What needs no other document: the kept features, scaled where that does not depend on the query.
  void select(FeatureMatrix raw, float* inputs) const;
};

/// Features (from 0) that have one value in all documents.
std::vector<std::int64_t> constant_features(const Dataset& data, ExecutionContext& context);

/// Fits to the training part alone. Constant features are told in the log; `drop_constant` leaves them out.
FittedNormaliser fit_normaliser(Normalisation kind, const Dataset& train, bool drop_constant,
                                ExecutionContext& context);

}  // namespace olrank
