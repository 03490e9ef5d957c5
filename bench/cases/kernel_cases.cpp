#include "bench/cases/case_list.h"
#include "core/ops/tangent_kernel.h"

namespace olrank {
namespace {

/// Operations of an inner product of two gradients: a multiplication and an addition per number of a row of
/// tangent factors.
double doc_operations(const NetworkShape& shape) {
  return 2.0 * real(shape.factors());
}

}  // namespace

/// Both documents of a pair in every layer except the last, where their difference is enough.
double pair_doc_operations(const NetworkShape& shape) {
  const NetworkLayer last = shape.layer(shape.depth - 1);
  return 2.0 * (2.0 * real(shape.factors() - last.columns - 1) + real(last.columns));
}

void add_kernel_cases(CaseList& list) {
  const NetworkShape shape = list.shape();
  const std::int64_t count = list.sizes().docs;
  const std::int64_t pairs = list.sizes().pairs;
  const double row = kFloat * real(shape.factors());
  const auto docs = list.docs(shape, count);
  const auto history = list.docs(shape, 2 * pairs, 2);
  const auto fresh = list.docs(shape, 2 * kRoundPairs);
  // A symmetric matrix: one triangle is needed.
  list.add("tangent_kernel/doc_kernel", list.of_docs(),
           {CeilingKind::kGemmDouble,
            0.5 * real(count * (count + 1)) * doc_operations(shape),
            {row * real(count), 0.0, kDouble * real(count * count)}},
           [docs, count] {
             return [data = docs(), kernel = std::vector<double>(length(count * count))]() mutable {
               doc_kernel(data->context, data->shape, data->rows(), 1.0, kernel.data());
             };
           });
  CaseList::Parameters parameters = list.of_pairs();
  parameters.insert(parameters.begin() + 1, {"V", count});
  list.add("tangent_kernel/pair_doc_kernel", parameters,
           {CeilingKind::kGemmDouble,
            real(pairs * count) * pair_doc_operations(shape),
            {row * real(2 * pairs + count), 0.0, kDouble * real(pairs * count)}},
           [docs, history, pairs, count] {
             return [data = docs(), seen = history(), kernel = std::vector<double>(length(pairs * count)),
                     count]() mutable {
               pair_doc_kernel(data->context, data->shape, seen->rows(), data->rows(), 1.0, kernel.data(),
                               count);
             };
           });
  // Few columns: the history's factors are read for a few products each, so memory is the limit.
  parameters = list.of_pairs();
  parameters.insert(parameters.begin() + 1, {"k", kRoundPairs});
  list.add("tangent_kernel/pair_kernel", parameters,
           {CeilingKind::kMemory,
            real(2 * pairs * kRoundPairs) * pair_doc_operations(shape),
            {row * real(2 * pairs + 2 * kRoundPairs), 0.0, kDouble * real(pairs * kRoundPairs)}},
           [fresh, history, pairs] {
             return [data = fresh(), seen = history(),
                     kernel = std::vector<double>(length(pairs * kRoundPairs))]() mutable {
               pair_kernel(data->context, data->shape, seen->rows(), data->rows(), 1.0, kernel.data(),
                           kRoundPairs);
             };
           });
}

}  // namespace olrank
