#include <algorithm>

#include "bench/cases/case_list.h"
#include "core/ops/inverse_factor.h"

namespace olrank {
namespace {

/// Diagonally dominant, and so are its extensions by small numbers.
void fill_corner(std::vector<double>& corner, std::int64_t added) {
  std::fill(corner.begin(), corner.end(), 0.01);
  for (std::int64_t i = 0; i < added; ++i) corner[length(i * added + i)] = 4.0;
}

InverseFactor grown_factor(ExecutionContext& context, std::int64_t pairs) {
  InverseFactor factor;
  while (factor.size() < pairs) {
    const std::int64_t added = std::min(factor.room(), pairs - factor.size());
    std::vector<double> cross = uniform_doubles(factor.size() * added, 5);
    for (double& value : cross) value *= 1e-3;
    std::vector<double> corner(length(added * added));
    fill_corner(corner, added);
    append(context, factor, added, cross.data(), added, corner.data(), added);
  }
  return factor;
}

struct GrownFactor {
  GrownFactor(std::shared_ptr<ExecutionContext> of, std::int64_t pairs)
      : context(std::move(of)), factor(grown_factor(*context, pairs)) {}
  std::shared_ptr<ExecutionContext> context;
  InverseFactor factor;
};

/// Appends the same rows repeatedly to an unchanged factor.
CaseList::Body appending(const std::shared_ptr<GrownFactor>& grown) {
  const std::int64_t n = grown->factor.size();
  const std::int64_t added = std::min(kRoundPairs, grown->factor.room());
  std::vector<double> cross = uniform_doubles(n * added, 6);
  for (double& value : cross) value *= 1e-3;
  return [grown, added, cross, corner = std::vector<double>(length(added * added))]() mutable {
    fill_corner(corner, added);
    InverseFactor copy = grown->factor;
    append(*grown->context, copy, added, cross.data(), added, corner.data(), added);
  };
}

/// The same with L⁻¹ cross already known.
CaseList::Body appending_solved(const std::shared_ptr<GrownFactor>& grown) {
  const std::int64_t added = std::min(kRoundPairs, grown->factor.room() - 1);
  std::vector<double> u = uniform_doubles(grown->factor.size() * added, 6);
  for (double& value : u) value *= 1e-3;
  return [grown, added, u, corner = std::vector<double>(length(added * added))]() mutable {
    fill_corner(corner, added);
    InverseFactor copy = grown->factor;
    append_solved(*grown->context, copy, added, u.data(), added, corner.data(), added);
  };
}

}  // namespace

void add_factor_cases(CaseList& list) {
  const std::int64_t pairs = list.sizes().pairs;
  const std::int64_t docs = list.sizes().docs;
  const double n = real(pairs);
  const double triangle = kDouble * 0.5 * n * (n + 1.0);
  const auto context = list.context();
  const auto grown = [context, pairs] { return std::make_shared<GrownFactor>(context(), pairs); };
  list.add("inverse_factor/apply", {{"n", pairs}, {"V", docs}},
           {CeilingKind::kGemmDouble,
            n * (n + 1.0) * real(docs),
            {triangle + kDouble * n * real(docs), 0.0, kDouble * n * real(docs)}},
           [grown, pairs, docs] {
             return [of = grown(), x = uniform_doubles(pairs * docs, 3),
                     y = std::vector<double>(length(pairs * docs)),
                     docs]() mutable { apply(*of->context, of->factor, docs, x.data(), y.data(), docs); };
           });
  // One row, as in a drift check.
  list.add(
      "inverse_factor/apply_from_right", {{"n", pairs}, {"rows", 1}},
      {CeilingKind::kMemory, n * (n + 1.0), {triangle + kDouble * n, 0.0, kDouble * n}}, [grown, pairs] {
        return
            [of = grown(), x = uniform_doubles(pairs, 3), y = std::vector<double>(length(pairs)),
             pairs]() mutable { apply_from_right(*of->context, of->factor, 1, x.data(), y.data(), pairs); };
      });
  list.add("inverse_factor/subtract_gram", {{"n", pairs}, {"V", docs}},
           {CeilingKind::kGemmDouble,
            n * real(docs * (docs + 1)),
            {kDouble * n * real(docs), kDouble * 0.5 * real(docs * docs), 0.0}},
           [context, pairs, docs] {
             return [of = context(), x = uniform_doubles(pairs * docs, 3),
                     c = std::vector<double>(length(docs * docs)), pairs,
                     docs]() mutable { subtract_gram(*of, pairs, docs, x.data(), docs, c.data(), docs); };
           });
  // Must read L⁻¹.
  list.add("inverse_factor/append", {{"n", pairs}, {"k", kRoundPairs}},
           {CeilingKind::kMemory,
            n * (n + 1.0) * real(kRoundPairs),
            {triangle + kDouble * n * real(kRoundPairs), 0.0, kDouble * n * real(kRoundPairs)}},
           [grown] { return appending(grown()); });
  list.add("inverse_factor/append_solved", {{"n", pairs}, {"k", kRoundPairs}},
           {CeilingKind::kMemory,
            real(kRoundPairs * kRoundPairs * kRoundPairs) / 3.0,
            {kDouble * n * real(kRoundPairs), 0.0, kDouble * n * real(kRoundPairs)}},
           [grown] { return appending_solved(grown()); });
  // All rows of a block except one.
  constexpr std::int64_t kOpen = InverseFactor::kBlock - 1;
  const std::int64_t inverted = pairs / InverseFactor::kBlock * InverseFactor::kBlock;
  const double n0 = real(inverted);
  list.add(
      "inverse_factor/invert_open_rows", {{"n", inverted}, {"k", kOpen}},
      {CeilingKind::kGemmDouble,
       n0 * (n0 + real(kOpen)) * real(kOpen),
       {kDouble * 0.5 * n0 * (n0 + 1.0) + kDouble * n0 * real(kOpen), 0.0, kDouble * n0 * real(kOpen)}},
      [context, inverted] {
        return [of = std::make_shared<GrownFactor>(context(), inverted + kOpen)] {
          InverseFactor copy = of->factor;
          invert_open_rows(*of->context, copy);
        };
      });
}

}  // namespace olrank
