#include <algorithm>

#include "bench/cases/case_list.h"
#include "core/ops/gradient_products.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/precise_scores.h"
#include "core/ops/relu_network.h"

namespace olrank {
namespace {

/// Pairs without common documents.
std::vector<PairTerm> terms_of(std::int64_t pairs) {
  std::vector<PairTerm> terms;
  terms.reserve(length(pairs));
  for (std::int32_t doc = 0; doc < 2 * pairs; doc += 2) terms.push_back({doc, doc + 1, 1.0, 1.0});
  return terms;
}

/// A history of pairs, and room for a gradient.
struct History {
  std::shared_ptr<Documents> data;
  std::vector<PairTerm> terms;
  std::vector<double> gradient;
};

/// A forward or backward pass takes a multiplication and an addition per parameter and document.
void add_pair_passes(CaseList& list) {
  const NetworkShape shape = list.shape;
  const std::int64_t p = shape.parameters();
  const std::int64_t pairs = list.sizes.pairs;
  const double pass = 2.0 * real(2 * pairs * p);
  const double features = kFloat * real(2 * pairs * shape.inputs + p);
  const auto docs = list.docs(shape, 2 * pairs);
  const auto add = [&](const std::string& name, double passes, double written, const auto& work) {
    list.add(name, list.of_pairs(), {CeilingKind::kGemmFloat, passes * pass, {features, 0.0, written}},
             [docs, pairs, p, work] {
               return [of = History{docs(), terms_of(pairs), std::vector<double>(length(p))},
                       work]() mutable { work(*of.data, of); };
             });
  };
  add("pair_training/pair_gradient", 2.0, kDouble * real(p), [](Documents& data, History& of) {
    pair_gradient(data.context, data.shape, data.theta, data.matrix(), of.terms, {}, of.gradient);
  });
  add("pair_training/pair_loss_gradient", 2.0, kDouble * real(p), [](Documents& data, History& of) {
    pair_loss_gradient(data.context, data.shape, data.theta, data.matrix(), of.terms, {}, of.gradient);
  });
  add("score_gradient/score_gradient", 2.0, kDouble * real(p), [](Documents& data, History& of) {
    const auto ones = [](std::span<const float>, std::span<double> slopes) {
      std::fill(slopes.begin(), slopes.end(), 1.0);
    };
    score_gradient(data.context, data.shape, data.theta, data.matrix(), ones, 1.0, of.gradient);
  });
  add("pair_training/pair_loss", 1.0, 0.0, [](Documents& data, History& of) {
    pair_loss(data.context, data.shape, data.theta, data.matrix(), of.terms, {});
  });
  CaseList::Parameters parameters = list.of_pairs();
  parameters.emplace_back("iterations", 1);
  list.add("largest_curvature/largest_curvature", parameters,
           {CeilingKind::kGemmDouble,
            2.0 * pass,
            {kFloat * real(2 * pairs * shape.factors()), kDouble * real(p), 0.0}},
           [docs, pairs, p] {
             return [data = docs(), terms = terms_of(pairs), vector = uniform<double>(p, 9)]() mutable {
               largest_curvature(data->context, data->shape, data->rows(), terms, vector, 0.0, 1);
             };
           });
}

/// The steps read and write these in double, and θ in float.
struct Step {
  explicit Step(std::int64_t p)
      : gradient(uniform<double>(p, 6)),
        position(length(p)),
        first(length(p)),
        second(length(p)),
        theta(length(p)) {}

  std::vector<double> gradient, position, first, second;
  std::vector<float> theta;
  std::int64_t number = 0;
};

void add_steps(CaseList& list) {
  const std::int64_t p = list.shape.parameters();
  // `read`, `updated` and `written` are bytes for each number.
  const auto add = [&](const std::string& name, double operations, const MemoryTraffic& each,
                       const auto& take) {
    list.add("optimizer_step/" + name, {{"p", p}},
             {CeilingKind::kMemory,
              operations * real(p),
              {each.read * real(p), each.updated * real(p), each.written * real(p)}},
             [p, take] { return [of = Step(p), take]() mutable { take(of); }; });
  };
  add("gradient_descent_step", 2.0, {kDouble, kFloat, 0.0},
      [](Step& of) { gradient_descent_step(1e-9, of.gradient, of.theta); });
  add("decayed_step", 4.0, {kDouble, kDouble, kFloat},
      [](Step& of) { decayed_step(1e-9, 1e-3, of.gradient, of.position, of.theta); });
  add("nesterov_step", 5.0, {kDouble, kDouble + kFloat, kDouble},
      [](Step& of) { nesterov_step(1e-9, of.gradient, of.first, of.position, of.theta); });
  // Three divisions and a square root per number count as one operation each, but take longer.
  add("adam_step", 16.0, {kDouble, 3.0 * kDouble, kFloat}, [](Step& of) {
    adam_step(++of.number, 1e-9, 0.0, of.gradient, {of.first, of.second}, of.position, of.theta);
  });
}

/// Rows of feature differences, each with its label.
struct LinearHistory {
  LinearHistory(std::int64_t pairs, std::int64_t features)
      : stride((features + FoldedPairs::kPadding - 1) / FoldedPairs::kPadding * FoldedPairs::kPadding),
        rows(uniform<double>(pairs * stride, 8)),
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
  const std::int64_t pairs = list.sizes.pairs;
  const std::int64_t features = list.sizes.features;
  const double numbers = real(pairs * features);
  list.add("folded_pair_gradient/folded_pair_gradient", {{"n", pairs}, {"d", features}},
           {CeilingKind::kMemory, 4.0 * numbers, {kDouble * numbers, 0.0, 0.0}},
           [context = list.context(), pairs, features] {
             return [of = context(), history = LinearHistory(pairs, features)]() mutable {
               folded_pair_gradient(*of, history.pairs(), history.theta, history.gradient, {});
             };
           });
}

}  // namespace

void add_training_cases(CaseList& list) {
  add_pair_passes(list);
  add_steps(list);
  add_linear(list);
}

/// Products of gradients with a vector, and sums of gradients: a multiplication and an addition per
/// parameter and document.
void add_gradient_cases(CaseList& list) {
  const NetworkShape shape = list.shape;
  const std::int64_t p = shape.parameters();
  const std::int64_t rows = list.sizes.pairs;
  const std::int64_t docs_count = 2 * rows;
  const double operations = 2.0 * real(docs_count * p);
  const double read = kFloat * real(docs_count * shape.factors());
  const auto docs = list.docs(shape, docs_count);
  list.add("gradient_products/pair_gradient_products", list.of_pairs(),
           {CeilingKind::kGemmDouble, operations, {read + kDouble * real(p), 0.0, kDouble * real(rows)}},
           [docs, rows, p] {
             return [data = docs(), v = uniform<double>(p, 2),
                     products = std::vector<double>(length(rows))]() mutable {
               pair_gradient_products(data->context, data->shape, data->rows(), v, products);
             };
           });
  list.add("gradient_products/pair_gradient_sum", list.of_pairs(),
           {CeilingKind::kGemmDouble, operations, {read + kDouble * real(rows), 0.0, kDouble * real(p)}},
           [docs, rows, p] {
             return [data = docs(), weights = uniform<double>(rows, 2),
                     sum = std::vector<double>(length(p))]() mutable {
               pair_gradient_sum(data->context, data->shape, data->rows(), weights, sum);
             };
           });
}

namespace {

/// A multiplication and an addition per weight and document.
double forward_operations(const NetworkShape& shape, std::int64_t docs) {
  return 2.0 * real(docs * shape.parameters());
}

MemoryTraffic forward_traffic(const NetworkShape& shape, std::int64_t docs, double written) {
  return {kFloat * real(docs * shape.inputs + shape.parameters()), 0.0, written};
}

}  // namespace

void add_network_cases(CaseList& list) {
  const NetworkShape shape = list.shape;
  const std::int64_t of_pass = std::min(list.sizes.docs, kDocsPerPass);
  const double units = real(of_pass * shape.width);
  list.add("relu_layers/forward_hidden", {{"V", of_pass}, {"m", shape.width}, {"d", shape.inputs}},
           {CeilingKind::kGemmFloat, forward_operations(shape, of_pass) - 2.0 * units,
            forward_traffic(shape, of_pass, kFloat * units)},
           [docs = list.docs(shape, of_pass)] {
             return [data = docs()] {
               forward_hidden(data->shape, data->theta.data(), data->features.data(), data->docs,
                              hidden_of_factors(data->shape, data->factors.data()));
             };
           });
  const std::int64_t count = list.sizes.docs;
  const double operations = forward_operations(shape, count);
  const auto docs = list.docs(shape, count);
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
