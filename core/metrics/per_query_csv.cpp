#include "core/metrics/per_query_csv.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string_view>

namespace olrank {
namespace {

void append_field(std::string& text, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    text += field;
    return;
  }
  text += '"';
  for (const char c : field) text.append(c == '"' ? 2 : 1, c);
  text += '"';
}

void append_number(std::string& text, double value) {
  text += ',';
  if (!std::isnan(value))
    fmt::format_to(std::back_inserter(text), "{}", value);  // the shortest that reads back
}

}  // namespace

std::string per_query_csv(const Dataset& data, const Evaluator& evaluator) {
  const MetricOptions& options = evaluator.options();
  std::string text = "qid,docs";
  for (const std::int64_t cutoff : options.cutoffs) text += fmt::format(",ndcg@{}", cutoff);
  text += fmt::format(",map,mrr,p@{},err@{},arp,pairs\n", options.precision_cutoff, options.err_cutoff);
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const QueryMetrics metrics = evaluator.of_query(query);
    append_field(text, data.qid(query));
    fmt::format_to(std::back_inserter(text), ",{}", data.docs_of(query));
    for (const double ndcg : metrics.ndcg) append_number(text, ndcg);
    for (const double value : {metrics.map, metrics.mrr, metrics.precision, metrics.err, metrics.arp}) {
      append_number(text, value);
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
    append_field(text, data.qid(query));
    for (const double ndcg : evaluator.of_query(query).ndcg) append_number(text, ndcg);
    text += '\n';
  }
  return text;
}

}  // namespace olrank
