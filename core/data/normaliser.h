#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/data/data_settings.h"
#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Two inputs of a model, which their product belongs to.
struct InputPair {
  std::int32_t first = 0;
  std::int32_t second = 0;

  friend bool operator==(const InputPair&, const InputPair&) = default;
};

/// (2x − 1)(2y − 1) of inputs in [0, 1].
inline double centred_product(double x, double y) {
  return (2.0 * x - 1.0) * (2.0 * y - 1.0);
}

struct SparseRows;

/// How raw feature values become a model's inputs: everything about the training part that this needs, so
/// that a model which carries it can rank raw values by itself.
struct FittedNormaliser {
  /// Inputs beyond ±this are refused: squares and sums of smaller ones stay far within float32, so that
  /// scores, tangent factors and widths are finite.
  static constexpr float kLargestInput = 1e12F;

  Normalisation kind = Normalisation::kNone;
  std::int64_t features = 0;       // of raw data
  std::vector<std::int64_t> kept;  // raw indices of the model's inputs, rising; empty for all of them
  std::vector<double> means;       // [features] by raw index, for zscore kinds
  std::vector<double> scales;      // [features], 1/standard deviation, 0 for a constant feature
  /// Additive models add so many inputs cos(kπx), k = 2, …, of every input x. Then the inputs of a query
  /// are first scaled to [0, 1] within it. At most HigherCosines::kTerms.
  std::int64_t cosines = 0;
  /// And centred_product() of pairs of inputs, which follow the cosines.
  std::vector<InputPair> products;

  /// Inputs without cosines and products.
  std::int64_t columns() const { return kept.empty() ? features : std::ssize(kept); }
  std::int64_t inputs() const { return columns() * (1 + cosines) + std::ssize(products); }
  /// Whether a document's inputs depend on the other documents of its query.
  bool scales_queries() const { return kind == Normalisation::kQueryMinmax || cosines > 0; }
  /// The normaliser of the data that the model was trained with, which gives rankers their inputs.
  FittedNormaliser without_terms() const;

  /// Normalises one query's raw documents [docs × features] into `inputs` [docs × inputs()], which may
  /// begin where the raw values do.
  void apply(FeatureMatrix raw, float* inputs) const;

  /// Appends the inputs of sparse documents to `rows`; they equal the dense ones. Throws InvalidArgument
  /// unless it keeps_zeros().
  void apply(FeatureMatrix raw, SparseRows& rows) const;
  /// Whether sparse documents keep their zeros. What shifts zeros would make their inputs dense.
  bool keeps_zeros() const;
  void require_sparse_inputs() const;  // throws InvalidArgument unless it keeps_zeros()

  struct BadInput {
    std::int64_t doc = 0;
    std::int64_t feature = 0;  // raw index
    float value = 0.0F;        // the input, not the raw value
  };
  /// The first of inputs [docs × inputs()] that is beyond ±kLargestInput or not a number. Scaling within a
  /// query hides large values, so only inputs without cosines show them.
  std::optional<BadInput> find_bad_input(const float* inputs, std::int64_t docs) const;

  /// A part normalised; its fingerprint is of the normalised content. Does not depend on the threads.
  /// Throws InvalidArgument for inputs beyond the limit.
  Dataset apply(const Dataset& raw, ExecutionContext& context) const;

 private:
  /// Writes the columns [docs × columns()], scaled where that does not depend on the query.
  void select(FeatureMatrix raw, float* inputs) const;
  void require_good_entries(const Dataset& raw) const;  // of sparse rows
  Dataset apply_sparse(const Dataset& raw, ExecutionContext& context) const;
  /// Throws if there is one.
  static void refuse(const Dataset& raw, const std::optional<BadInput>& bad);
};

/// Features (from 0) that have one value in all documents.
std::vector<std::int64_t> constant_features(const Dataset& data, ExecutionContext& context);

/// Fits to the training part alone. Constant features are told in the log; `drop_constant` leaves them out.
FittedNormaliser fit_normaliser(Normalisation kind, const Dataset& train, bool drop_constant,
                                ExecutionContext& context);

/// A fitted normaliser as the JSON object that model files carry; its numbers read back exactly.
std::string normaliser_text(const FittedNormaliser& normaliser);

/// Throws DataError, with `origin` as the file, for a text that is no such object.
FittedNormaliser parse_normaliser(const std::string& text, const std::string& origin);

/// Default names of features, f1, f2, …, and names as the text in a model file.
std::vector<std::string> plain_feature_names(std::int64_t features);
std::string feature_names_text(const std::vector<std::string>& names);
/// The names in such a text; none if it is no list of names.
std::vector<std::string> parse_feature_names(const std::string& text);
/// Such a text for the models of a data file: the content of FILE.names, if that is there; else of the
/// default names. Throws InvalidArgument if it has other than one name for each feature.
std::string feature_names_beside(const std::string& file, std::int64_t features);
/// Throws InvalidArgument unless each feature has a name of its own; `origin` says where the names are
/// from.
void require_feature_names(const std::vector<std::string>& names, std::int64_t features,
                           const std::string& origin);

}  // namespace olrank
