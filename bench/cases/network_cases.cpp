#include <algorithm>

#include "bench/cases/case_list.h"
#include "core/ops/precise_scores.h"
#include "core/ops/relu_layers.h"

namespace olrank {
namespace {

/// A multiplication and an addition per weight and document.
double forward_operations(const NetworkShape& shape, std::int64_t docs) {
  return 2.0 * real(docs * shape.parameters());
}

MemoryTraffic forward_traffic(const NetworkShape& shape, std::int64_t docs, double written) {
  return {kFloat * real(docs * shape.inputs + shape.parameters()), 0.0, written};
}

void add_passes(CaseList& list) {
  const NetworkShape shape = list.shape();
  const std::int64_t count = std::min(list.sizes().docs, kDocsPerPass);
  const double units = real(count * shape.width);
  const CaseList::Parameters sizes = {{"V", count}, {"m", shape.width}, {"d", shape.inputs}};
  const auto docs = list.docs(shape, count);
  list.add("relu_layers/forward_hidden", sizes,
           {CeilingKind::kGemmFloat, forward_operations(shape, count) - 2.0 * units,
            forward_traffic(shape, count, kFloat * units)},
           [docs] {
             return [data = docs()] {
               forward_hidden(data->shape, data->theta.data(), data->features.data(), data->docs,
                              hidden_of_factors(data->shape, data->factors.data()));
             };
           });
  list.add("relu_layers/forward_output", sizes,
           {CeilingKind::kMemory, 2.0 * units, {kFloat * units, 0.0, kFloat * real(count)}}, [docs, count] {
             return [data = docs(), scores = std::vector<float>(length(count))]() mutable {
               forward_output(data->shape, data->theta.data(), data->features.data(),
                              hidden_of_factors(data->shape, data->factors.data()), data->docs,
                              scores.data(), nullptr);
             };
           });
  // Deltas below the last layer are an outer product, those below other layers a matrix product.
  const double multiplied = 2.0 * units * real(shape.width * (shape.depth - 2));
  list.add("relu_layers/backward_deltas", sizes,
           {shape.depth == 2 ? CeilingKind::kMemory : CeilingKind::kGemmFloat,
            units + multiplied,
            {kFloat * units, 0.0, kFloat * units}},
           [docs] {
             return [data = docs()] {
               const float one = 1.0F;
               float* factors = data->factors.data();
               backward_deltas(data->shape, data->theta.data(), &one, 0, data->docs,
                               hidden_of_factors(data->shape, factors),
                               deltas_of_factors(data->shape, factors));
             };
           });
}

}  // namespace

void add_network_cases(CaseList& list) {
  const NetworkShape shape = list.shape();
  const std::int64_t count = list.sizes().docs;
  const double operations = forward_operations(shape, count);
  const auto docs = list.docs(shape, count);
  list.add("relu_network/initialise", {{"p", shape.parameters()}},
           {CeilingKind::kMemory, 0.0, {0.0, 0.0, kFloat * real(shape.parameters())}}, [shape] {
             return [shape, theta = std::vector<float>(length(shape.parameters()))]() mutable {
               initialise(shape, Initialisation::kSymmetric,
                          make_key({.seed = 1, .purpose = Purpose::kInitialisation}), theta);
             };
           });
  add_passes(list);
  list.add("relu_network/score_docs", list.of_docs(),
           {CeilingKind::kGemmFloat, operations, forward_traffic(shape, count, kFloat * real(count))},
           [docs, count] {
             return [data = docs(), scores = std::vector<float>(length(count))]() mutable {
               score_docs(data->context, data->shape, data->theta, data->matrix(), scores);
             };
           });
  list.add("precise_scores/precise_scores", list.of_docs(),
           {CeilingKind::kGemmDouble, operations, forward_traffic(shape, count, kDouble * real(count))},
           [docs, count] {
             const auto data = docs();
             return [data, theta = std::vector<double>(data->theta.begin(), data->theta.end()),
                     scores = std::vector<double>(length(count))]() mutable {
               precise_scores(data->context.scratch(), data->shape, theta, data->matrix(), scores);
             };
           });
  list.add("tangent_factors/tangent_factors", list.of_docs(),
           {CeilingKind::kGemmFloat, operations,
            forward_traffic(shape, count, kFloat * real(count * shape.factors()))},
           [docs] {
             return [data = docs()] {
               tangent_factors(data->context, data->shape, data->theta, data->matrix(), data->factors);
             };
           });
}

}  // namespace olrank
