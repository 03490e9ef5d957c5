#include "bench/cases/case_list.h"
#include "core/ops/inverse_covariance.h"

namespace olrank {
namespace {

std::vector<double> prior_inverse(const NetworkShape& shape) {
  std::vector<double> inverse(length(shape.parameters() * shape.parameters()));
  set_inverse_covariance(shape.parameters(), 10.0, inverse.data());
  return inverse;
}

}  // namespace

void add_inverse_cases(CaseList& list) {
  const NetworkShape shape = list.narrow();
  const std::int64_t parameters = shape.parameters();
  const std::int64_t count = list.sizes().docs;
  const std::int64_t pairs = list.sizes().pairs;
  const double scale = 1.0 / real(shape.width);
  const double p = real(parameters);
  const double square = p * p;
  const auto fresh = list.docs(shape, 2 * kRoundPairs);
  const auto docs = list.docs(shape, count);
  const auto history = list.docs(shape, 2 * pairs, 2);
  list.add("inverse_covariance/set_inverse_covariance", {{"p", parameters}},
           {CeilingKind::kMemory, 0.0, {0.0, 0.0, kDouble * square}}, [shape] {
             return [shape, inverse = prior_inverse(shape)]() mutable {
               set_inverse_covariance(shape.parameters(), 10.0, inverse.data());
             };
           });
  // A⁻¹ is read for P; then one half of it is updated and the other written.
  list.add("inverse_covariance/update_inverse_covariance", {{"k", kRoundPairs}, {"p", parameters}},
           {CeilingKind::kMemory,
            3.0 * square * real(kRoundPairs),
            {kDouble * square, kDouble * 0.5 * square, kDouble * 0.5 * square}},
           [fresh, shape, scale] {
             return [data = fresh(), inverse = prior_inverse(shape), scale]() mutable {
               update_inverse_covariance(data->context, data->shape, data->rows(), scale, inverse.data());
             };
           });
  // Half of ΓᵀΓ, the factor and its inverse, half of L⁻ᵀL⁻¹.
  list.add("inverse_covariance/inverse_covariance_of", {{"n", pairs}, {"p", parameters}},
           {CeilingKind::kGemmDouble,
            square * real(pairs) + square * p,
            {kFloat * real(2 * pairs * shape.factors()), 0.0, kDouble * square}},
           [history, shape, scale] {
             return [data = history(), inverse = prior_inverse(shape), scale]() mutable {
               inverse_covariance_of(data->context, data->shape, data->rows(), 10.0, scale, inverse.data());
             };
           });
  // Half of the symmetric A⁻¹ is multiplied.
  list.add("inverse_covariance/inverse_covariance_gram", {{"V", count}, {"p", parameters}},
           {CeilingKind::kGemmDouble,
            square * real(count) + p * real(count * (count + 1)),
            {kDouble * 0.5 * square, 0.0, kDouble * real(count * count)}},
           [docs, shape, scale, count] {
             return [data = docs(), inverse = prior_inverse(shape), scale,
                     m = std::vector<double>(length(count * count))]() mutable {
               inverse_covariance_gram(data->context, data->shape, data->rows(), scale, inverse.data(),
                                       m.data());
             };
           });
}

}  // namespace olrank
