#include "core/metrics/per_query_csv.h"

#include <fmt/format.h>

#include <iterator>

#include "core/text/csv.h"

namespace olrank {

std::string per_query_csv(const Dataset& data, const Evaluator& evaluator) {
  const MetricOptions& options = evaluator.options();
  std::string text = "qid,docs";
  for (const std::int64_t cutoff : options.cutoffs) text += fmt::format(",ndcg@{}", cutoff);
  text += fmt::format(",map,mrr,p@{},err@{},arp,pairs\n", options.precision_cutoff, options.err_cutoff);
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const QueryMetrics metrics = evaluator.of_query(query);
    text += csv_field(data.qid(query));
    fmt::format_to(std::back_inserter(text), ",{}", data.docs_of(query));
    for (const double ndcg : metrics.ndcg) text += "," + csv_number(ndcg);
    for (const double value : {metrics.map, metrics.mrr, metrics.precision, metrics.err, metrics.arp}) {
      text += "," + csv_number(value);
    }
    fmt::format_to(std::back_inserter(text), ",{}\n", metrics.misordered_pairs);
  }
  return text;
}

std::string query_ndcg_csv(const Dataset& data, const Evaluator& evaluator) {
  std::string text = "qid";
  for (const std::int64_t cutoff : evaluator.options().cutoffs) text += fmt::format(",ndcg@{}", cutoff);
  text += '\n';
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    text += csv_field(data.qid(query));
    for (const double ndcg : evaluator.of_query(query).ndcg) text += "," + csv_number(ndcg);
    text += '\n';
  }
  return text;
}

}  // namespace olrank
