#include "jobs/exploring_lists.h"

#include <string>
#include <utility>

#include "core/data/sparse_rows.h"
#include "core/metrics/doc_label.h"

namespace olrank {

ExploringLists::ExploringLists(SavedTrial trial, FittedNormaliser normaliser)
    : trial_(std::move(trial)), normaliser_(std::move(normaliser)) {}

void ExploringLists::write(ListFormat format, const Dataset& data, ExecutionContext& context,
                           const TextSink& sink) {
  RoundContext round_context{context, clock_};
  const std::int64_t columns = normaliser_.inputs();
  std::string text;
  std::vector<std::int64_t> score_of;
  std::vector<float> zeros;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const FeatureMatrix raw = with_zeros(data.rows_of(query), zeros);
    inputs_.resize(raw.docs * columns);
    normaliser_.apply(raw, inputs_.data());
    const std::int64_t round = trial_.rounds + ++queries_;
    QueryDocs docs{queries_ - 1, data.offset(query), {inputs_.data(), raw.docs, columns}};
    const QueryIdentity unknown;  // these queries are none of those that the trial was asked
    docs.identity = &unknown;
    const RankedList list = trial_.ranker->rank(round_context, docs, static_cast<std::uint32_t>(round));
    text.clear();
    score_of.assign(raw.docs, 0);
    std::int64_t rank = 0;
    for (const std::int32_t doc : list.docs) {
      score_of[doc] = raw.docs - rank++;
      if (format == ListFormat::kTrec) {
        append_run_line(text, data.qid(query), DocLabel(data, query, doc).view(), rank,
                        static_cast<double>(score_of[doc]));
      }
    }
    if (format == ListFormat::kScores) {
      for (const std::int64_t score : score_of) text += std::to_string(score) + "\n";
    }
    sink(text);
  }
}

}  // namespace olrank
