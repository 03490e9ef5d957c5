#include "bench/cases/case_list.h"
#include "core/ops/gradient_products.h"

namespace olrank {
namespace {

/// Written-out gradients: one multiplication per number for a document, three and a subtraction for a pair.
void add_expansions(CaseList& list) {
  const NetworkShape shape = list.shape();
  const std::int64_t p = shape.parameters();
  const std::int64_t count = list.sizes().docs;
  const std::int64_t pairs = (count + 1) / 2;
  const auto docs = list.docs(shape, 2 * pairs);
  list.add("tangent_factors/expand_docs", list.of_docs(),
           {CeilingKind::kMemory,
            real(count * p),
            {kFloat * real(count * shape.factors()), 0.0, kDouble * real(count * p)}},
           [docs, count, p] {
             return [data = docs(), count, p, rows = std::vector<double>(length(count * p))]() mutable {
               expand_docs(data->shape, {data->factors.data(), count}, 1.0, 0, p, rows.data(), p);
             };
           });
  list.add("tangent_factors/expand_pairs", {{"k", pairs}, {"m", shape.width}, {"d", shape.inputs}},
           {CeilingKind::kMemory,
            4.0 * real(pairs * p),
            {kFloat * real(2 * pairs * shape.factors()), 0.0, kDouble * real(pairs * p)}},
           [docs, pairs, p] {
             return [data = docs(), p, rows = std::vector<double>(length(pairs * p))]() mutable {
               expand_pairs(data->shape, data->rows(), 1.0, 0, p, rows.data(), p);
             };
           });
}

/// Products of gradients with a vector, and sums of gradients: a multiplication and an addition per
/// parameter and document.
void add_contractions(CaseList& list, const CaseList::Parameters& parameters, std::int64_t docs_count,
                      bool of_pairs) {
  const NetworkShape shape = list.shape();
  const std::int64_t p = shape.parameters();
  const std::int64_t rows = of_pairs ? docs_count / 2 : docs_count;
  const std::string prefix = of_pairs ? "gradient_products/pair_" : "gradient_products/";
  const double operations = 2.0 * real(docs_count * p);
  const double read = kFloat * real(docs_count * shape.factors());
  const auto docs = list.docs(shape, docs_count);
  const auto multiply = of_pairs ? pair_gradient_products : gradient_products;
  const auto add_up = of_pairs ? pair_gradient_sum : gradient_sum;
  list.add(prefix + "gradient_products", parameters,
           {CeilingKind::kGemmDouble, operations, {read + kDouble * real(p), 0.0, kDouble * real(rows)}},
           [docs, multiply, rows, p] {
             return [data = docs(), multiply, v = uniform_doubles(p, 2),
                     products = std::vector<double>(length(rows))]() mutable {
               multiply(data->context, data->shape, data->rows(), v, products);
             };
           });
  list.add(prefix + "gradient_sum", parameters,
           {CeilingKind::kGemmDouble, operations, {read + kDouble * real(rows), 0.0, kDouble * real(p)}},
           [docs, add_up, rows, p] {
             return [data = docs(), add_up, weights = uniform_doubles(rows, 2),
                     sum = std::vector<double>(length(p))]() mutable {
               add_up(data->context, data->shape, data->rows(), weights, sum);
             };
           });
}

}  // namespace

void add_gradient_cases(CaseList& list) {
  add_expansions(list);
  add_contractions(list, list.of_docs(), list.sizes().docs, false);
  add_contractions(list, list.of_pairs(), 2 * list.sizes().pairs, true);
}

}  // namespace olrank
