#include "core/metrics/named_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/text/text_table.h"

namespace olrank {
namespace {

template <class Metrics>
NamedValues values_of(const MetricOptions& options, const Metrics& metrics) {
  NamedValues values;
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i)
    values.emplace_back(fmt::format("ndcg@{}", options.cutoffs[i]), metrics.ndcg[i]);
  for (std::size_t i = 0; i < options.cutoffs.size(); ++i)
    values.emplace_back(fmt::format("dcg@{}", options.cutoffs[i]), metrics.dcg[i]);
  values.emplace_back("map", metrics.map);
  values.emplace_back("mrr", metrics.mrr);
  values.emplace_back(fmt::format("p@{}", options.precision_cutoff), metrics.precision);
  values.emplace_back(fmt::format("err@{}", options.err_cutoff), metrics.err);
  values.emplace_back("arp", metrics.arp);
  values.emplace_back("pair_accuracy", metrics.pair_accuracy);
  for (std::size_t i = 0; i < options.named.size(); ++i) {
    const std::string name = options.named[i].name();
    const bool there =
        std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
    if (!there) values.emplace_back(name, metrics.named[i]);
  }
  return values;
}

}  // namespace

NamedValues named_values(const MetricOptions& options, const MetricReport& report) {
  return values_of(options, report);
}

NamedValues named_values(const MetricOptions& options, const QueryMetrics& query) {
  return values_of(options, query);
}

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
