#include <algorithm>

#include "bench/cases/case_list.h"
#include "core/ops/folded_pair_gradient.h"
#include "core/ops/largest_curvature.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/score_gradient.h"

namespace olrank {
namespace {

/// Pairs without common documents.
std::vector<PairTerm> terms_of(std::int64_t pairs) {
  std::vector<PairTerm> terms;
  terms.reserve(length(pairs));
  for (std::int32_t doc = 0; doc < 2 * pairs; doc += 2) terms.push_back({doc, doc + 1, 1.0, 1.0});
  return terms;
}

/// A forward or backward pass takes a multiplication and an addition per parameter and document.
void add_pair_passes(CaseList& list) {
  const NetworkShape shape = list.shape();
  const std::int64_t p = shape.parameters();
  const std::int64_t pairs = list.sizes().pairs;
  const double pass = 2.0 * real(2 * pairs * p);
  const double features = kFloat * real(2 * pairs * shape.inputs + p);
  const auto docs = list.docs(shape, 2 * pairs);
  list.add("pair_training/pair_gradient", list.of_pairs(),
           {CeilingKind::kGemmFloat, 2.0 * pass, {features, 0.0, kDouble * real(p)}}, [docs, pairs, p] {
             return [data = docs(), terms = terms_of(pairs),
                     gradient = std::vector<double>(length(p))]() mutable {
               pair_gradient(data->context, data->shape, data->theta, data->matrix(), terms, {}, gradient);
             };
           });
  list.add("pair_training/pair_loss_gradient", list.of_pairs(),
           {CeilingKind::kGemmFloat, 2.0 * pass, {features, 0.0, kDouble * real(p)}}, [docs, pairs, p] {
             return [data = docs(), terms = terms_of(pairs),
                     gradient = std::vector<double>(length(p))]() mutable {
               pair_loss_gradient(data->context, data->shape, data->theta, data->matrix(), terms, {},
                                  gradient);
             };
           });
  list.add("score_gradient/score_gradient", list.of_pairs(),
           {CeilingKind::kGemmFloat, 2.0 * pass, {features, 0.0, kDouble * real(p)}}, [docs, p] {
             return [data = docs(), gradient = std::vector<double>(length(p))]() mutable {
               const auto ones = [](std::span<const float>, std::span<double> slopes) {
                 std::fill(slopes.begin(), slopes.end(), 1.0);
               };
               score_gradient(data->context, data->shape, data->theta, data->matrix(), ones, 1.0, gradient);
             };
           });
  list.add("pair_training/pair_loss", list.of_pairs(),
           {CeilingKind::kGemmFloat, pass, {features, 0.0, 0.0}}, [docs, pairs] {
             return [data = docs(), terms = terms_of(pairs)] {
               pair_loss(data->context, data->shape, data->theta, data->matrix(), terms, {});
             };
           });
  CaseList::Parameters parameters = list.of_pairs();
  parameters.emplace_back("iterations", 1);
  list.add("largest_curvature/largest_curvature", parameters,
           {CeilingKind::kGemmDouble,
            2.0 * pass,
            {kFloat * real(2 * pairs * shape.factors()), kDouble * real(p), 0.0}},
           [docs, pairs, p] {
             return [data = docs(), terms = terms_of(pairs), vector = uniform_doubles(p, 9)]() mutable {
               largest_curvature(data->context, data->shape, data->rows(), terms, vector, 0.0, 1);
             };
           });
}

/// Gradient, position, velocity and moments in double, θ in float.
void add_steps(CaseList& list) {
  const std::int64_t p = list.shape().parameters();
  const double numbers = real(p);
  const auto doubles = [p] { return std::vector<double>(length(p)); };
  const auto floats = [p] { return std::vector<float>(length(p)); };
  list.add("optimizer_step/gradient_descent_step", {{"p", p}},
           {CeilingKind::kMemory, 2.0 * numbers, {kDouble * numbers, kFloat * numbers, 0.0}}, [p, floats] {
             return [gradient = uniform_doubles(p, 6), theta = floats()]() mutable {
               gradient_descent_step(1e-9, gradient, theta);
             };
           });
  list.add("optimizer_step/decayed_step", {{"p", p}},
           {CeilingKind::kMemory, 4.0 * numbers, {kDouble * numbers, kDouble * numbers, kFloat * numbers}},
           [p, doubles, floats] {
             return [gradient = uniform_doubles(p, 6), position = doubles(), theta = floats()]() mutable {
               decayed_step(1e-9, 1e-3, gradient, position, theta);
             };
           });
  list.add("optimizer_step/nesterov_step", {{"p", p}},
           {CeilingKind::kMemory,
            5.0 * numbers,
            {kDouble * numbers, (kDouble + kFloat) * numbers, kDouble * numbers}},
           [p, doubles, floats] {
             return
                 [gradient = uniform_doubles(p, 6), velocity = doubles(), position = doubles(),
                  theta = floats()]() mutable { nesterov_step(1e-9, gradient, velocity, position, theta); };
           });
  // Three divisions and a square root per number count as one operation each, but take longer.
  list.add("optimizer_step/adam_step", {{"p", p}},
           {CeilingKind::kMemory,
            16.0 * numbers,
            {kDouble * numbers, 3.0 * kDouble * numbers, kFloat * numbers}},
           [p, doubles, floats] {
             return [gradient = uniform_doubles(p, 6), first = doubles(), second = doubles(),
                     position = doubles(), theta = floats(), number = std::int64_t{0}]() mutable {
               adam_step(++number, 1e-9, 0.0, gradient, {first, second}, position, theta);
             };
           });
}

/// Rows of feature differences, each with its label.
struct LinearHistory {
  LinearHistory(std::int64_t pairs, std::int64_t features)
      : stride((features + FoldedPairs::kPadding - 1) / FoldedPairs::kPadding * FoldedPairs::kPadding),
        rows(uniform_doubles(pairs * stride, 8)),
        wins(length(pairs), 1.0),
        theta(length(stride)),
        gradient(length(stride)) {}
  FoldedPairs pairs() const { return {rows.data(), std::ssize(wins), stride, wins.data(), wins.data()}; }

  std::int64_t stride;
  std::vector<double> rows;
  std::vector<double> wins;
  std::vector<double> theta;
  std::vector<double> gradient;
};

void add_linear(CaseList& list) {
  const std::int64_t pairs = list.sizes().pairs;
  const std::int64_t features = list.sizes().features;
  const CaseList::Parameters sizes = {{"n", pairs}, {"d", features}};
  const double inner = 2.0 * real(pairs * features);
  const MemoryTraffic rows{kDouble * real(pairs * features), 0.0, 0.0};
  list.add("folded_pair_gradient/folded_pair_gradient", sizes, {CeilingKind::kMemory, 2.0 * inner, rows},
           [context = list.context(), pairs, features] {
             return [of = context(), history = LinearHistory(pairs, features)]() mutable {
               folded_pair_gradient(*of, history.pairs(), history.theta, history.gradient, {});
             };
           });
  list.add("folded_pair_gradient/folded_pair_loss", sizes, {CeilingKind::kMemory, inner, rows},
           [pairs, features] {
             return [history = LinearHistory(pairs, features)] {
               folded_pair_loss(history.pairs(), history.theta);
             };
           });
}

}  // namespace

void add_training_cases(CaseList& list) {
  add_pair_passes(list);
  add_steps(list);
  add_linear(list);
}

}  // namespace olrank
