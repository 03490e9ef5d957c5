#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "core/data/dataset.h"
#include "core/runtime/execution_context.h"
#include "core/settings/enum_names.h"
#include "models/model_scorer.h"

namespace olrank {

enum class ListFormat { kTrec, kScores };

template <>
struct EnumNames<ListFormat> {
  static constexpr std::array values = {std::pair{ListFormat::kTrec, std::string_view("trec")},
                                        std::pair{ListFormat::kScores, std::string_view("scores")}};
};

/// Takes the text of what was ranked, in the order of the data.
using TextSink = std::function<void(std::string_view)>;

/// Scores and ranks all queries of `data`, which is as wide as the model: lines of a TREC run, best first,
/// or a number a document. What is written does not depend on the threads. Throws NumericError for a score
/// that is not finite.
void write_ranked(const ModelScorer& scorer, ListFormat format, const Dataset& data,
                  ExecutionContext& context, const TextSink& sink);

/// One line of a TREC run.
void append_run_line(std::string& text, std::string_view qid, std::string_view docno, std::int64_t rank,
                     double score);

}  // namespace olrank
