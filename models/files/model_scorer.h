#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"
#include "models/files/model_file.h"

namespace olrank {

/// How queries and documents are called, by their numbers; a text is empty where there is no name.
struct QueryNames {
  std::function<std::string_view(std::int64_t)> query{};
  std::function<std::string_view(std::int64_t)> doc{};
};
/// Names queries and documents of `data`, from `first_query` on, by qid and docid.
QueryNames names_of(const Dataset& data, std::int64_t first_query = 0);

/// A model file's function of raw documents: normalisation by query, then the mean of the members' scores,
/// in double. Several threads may use it at once, each with its own scratch memory.
class ModelScorer {
 public:
  explicit ModelScorer(LoadedModel model);

  const LoadedModel& model() const { return model_; }
  std::int64_t features() const { return model_.normaliser.features; }
  /// Whether the model needs no zeros of sparse documents; score() makes them dense for another.
  static bool takes_sparse(const LoadedModel& model) {
    return model.normaliser.keeps_zeros() && !model.module && !model.start && !model.external &&
           !model.memory;
  }

  /// Scores of raw documents of whole queries: query q has rows offsets[q] − offsets[0] and following.
  /// Names count queries and rows from 0.
  void score(Scratch& scratch, FeatureMatrix raw, std::span<const std::int64_t> offsets,
             std::span<double> scores, const QueryNames& names = {}) const;

 private:
  void score_inputs(Scratch& scratch, FeatureMatrix docs, std::span<const std::int64_t> offsets,
                    std::span<double> scores) const;
  void score_by_member(Scratch& scratch, std::size_t member, FeatureMatrix docs,
                       std::span<const std::int64_t> offsets, std::span<double> scores) const;

  LoadedModel model_;
  std::vector<std::vector<double>> members_;  // θ in double
};

/// The model as a function of the inputs that its normaliser makes of raw documents.
LoadedModel on_inputs(LoadedModel model);

/// `data` widened to the features of the model with zeros. Throws DataError, naming `source`, for features
/// that the model does not have.
Dataset fitted_to_model(const Dataset& data, const LoadedModel& model, const std::string& source,
                        ExecutionContext& context);

/// Warns that features of the model are 0 because the data has fewer.
void warn_of_fewer_features(const std::string& source, std::int64_t of_data, std::int64_t of_model);

/// Warns that a model's memory knows no document of the data, which have no IDs.
void warn_of_missing_names(const std::string& source, const Dataset& data, const LoadedModel& model);

/// Ranges of adjacent queries with about as many documents as a worker scores at a time.
struct QueryRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
std::vector<QueryRange> query_ranges(const Dataset& data, std::int64_t docs);

/// Scores of all documents of `data`, which is as wide as the model.
std::vector<double> scores_of_all(const ModelScorer& scorer, const Dataset& data,
                                  ExecutionContext& context);

}  // namespace olrank
