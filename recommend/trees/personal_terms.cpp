#include "recommend/trees/personal_terms.h"

#include <vector>

#include "core/math/pair_loss.h"

namespace olrank {
namespace {

/// Adds the term of one row; returns ‖ũ‖².
double add_personal_term(const SplitData& data, std::int32_t row, const PairSource* pairs, double penalty,
                         DescentSettings descent, FactorRows& factors) {
  if (pairs == nullptr) descent.pair_weight = 0.0;
  const std::span<float> factor = factors.row(row);
  const std::vector<double> leaf(factor.begin(), factor.end());
  const std::span<const double> sums = data.sums_of(row);
  const std::uint8_t only_part = 0;
  NodePairs gathered;
  if (descent.pair_weight > 0.0) gathered = pairs->gather({&row, 1}, factors);
  const PartFit fit = fit_parts({std::vector<double>(sums.begin(), sums.end()), {}, {}}, {1, 0, 0}, leaf,
                                leaf, penalty, gathered, {&only_part, 1}, descent);
  double norm_sq = 0.0;
  for (std::size_t k = 0; k < leaf.size(); ++k) {
    norm_sq += squared_distance(fit.factors[0][k], leaf[k]);
    factor[k] = static_cast<float>(fit.factors[0][k]);
  }
  return norm_sq;
}

}  // namespace

double add_user_terms(ExecutionContext& context, const SplitData& data, std::span<const std::int32_t> rows,
                      const PairSource* pairs, double penalty, const DescentSettings& descent,
                      FactorRows& factors) {
  constexpr std::int64_t kRowsOfBlock = 32;
  std::vector<double> norms(rows.size());
  context.for_blocks(std::ssize(rows), kRowsOfBlock, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t place = begin; place < end; ++place)
      norms[place] = add_personal_term(data, rows[place], pairs, penalty, descent, factors);
  });
  double sum = 0.0;
  for (const double norm : norms) sum += norm;
  return penalty * sum;
}

double add_item_terms(const SplitData& data, std::span<const std::int32_t> rows, const PairSource* pairs,
                      double penalty, const DescentSettings& descent, FactorRows& factors) {
  double sum = 0.0;
  for (const std::int32_t row : rows) sum += add_personal_term(data, row, pairs, penalty, descent, factors);
  return penalty * sum;
}

}  // namespace olrank
