#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"
#include "core/settings/enum_names.h"
#include "core/text/text_table.h"
#include "jobs/saved_trial.h"
#include "models/files/model_scorer.h"

namespace olrank {

enum class ListFormat { kTrec, kScores };

template <>
struct EnumNames<ListFormat> {
  static constexpr std::array values = names_in_order<ListFormat>("trec", "scores");
};

/// Scores and ranks all queries of `data`, whose features match the model: writes lines of a TREC run, best
/// first, or one score per document. The output does not depend on the number of threads. Throws
/// NumericError for a score that is not finite.
void write_ranked(const ModelScorer& scorer, ListFormat format, const Dataset& data,
                  ExecutionContext& context, const TextSink& sink);

/// Writes the grades of all documents as TREC judgements, which `eval --qrels` and trec_eval read.
void write_judgements(const Dataset& data, const TextSink& sink);

/// The lists that a trial's ranker would show next. Query i of the data is round T + 1 + i, after the T
/// rounds that the ranker has learned from.
class ExploringLists {
 public:
  /// `normaliser` gives the ranker its inputs.
  ExploringLists(SavedTrial trial, FittedNormaliser normaliser);

  /// Writes in the formats of write_ranked(). Exploring lists have no scores; a document's score is V minus
  /// its rank.
  void write(ListFormat format, const Dataset& data, ExecutionContext& context, const TextSink& sink);

 private:
  SavedTrial trial_;
  FittedNormaliser normaliser_;
  StageClock clock_;
  std::int64_t queries_ = 0;
  std::vector<float> inputs_;
};

}  // namespace olrank
