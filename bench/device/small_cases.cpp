#include <cmath>

#include "bench/device/bench_tensors.h"
#include "cuda/ops/diagonal_covariance.h"
#include "cuda/ops/history_update.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/largest_curvature.h"
#include "cuda/ops/mini_batch.h"
#include "cuda/ops/optimizer_step.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/ops/replay.h"
#include "cuda/ops/theory_alpha.h"

// The small operations of a round, whose time is mostly launch overhead.
namespace olrank {
namespace {

constexpr double kPriorLambda = 10.0;
constexpr std::int64_t kLesson = 2 * kRoundPairs;  // documents per round

void add_updates(Launches& table) {
  const Operands make{table.sizes};
  const std::int64_t docs = table.sizes.docs, features = table.sizes.features;
  table.add("history_update/gather_docs", {{"docs", kLesson}, {"d", features}},
            {0.0, 2.0 * kFloatBytes * real(kLesson * features)}, [=](Stream) {
              const auto from = make.rand<float>({docs, features});
              const Array<std::int64_t> numbers{at::randint(docs, {kLesson}, make.options<std::int64_t>())};
              const auto to = make.empty<float>({kLesson, features});
              return compared(
                  [=](Stream on) { device::gather_docs(on, from, features, numbers, kLesson, to); },
                  [=] { return from.t.index_select(0, numbers.t); }, to.t, 0.0);
            });
  table.add("history_update/write_terms", {{"k", kRoundPairs}},
            {0.0, real(kRoundPairs) * real(sizeof(DeviceUpdate::Term) + sizeof(PairTerm))}, [=](Stream) {
              std::vector<DeviceUpdate::Term> changed(kRoundPairs);
              for (std::int32_t i = 0; i < kRoundPairs; ++i) changed[i].index = 2 * i;
              const auto there = make.these(changed);
              const auto terms = make.these(std::vector<PairTerm>(2 * kRoundPairs));
              return alone([=](Stream on) { device::write_terms(on, there, kRoundPairs, terms); });
            });
  const double square = real(kRoundPairs * kRoundPairs);
  // A factor and its inverse, a third of k³ products each. With M = I, disjoint pairs have I + ΔMΔᵀ = 3I.
  table.add("pair_corner/factor_pair_corner", {{"k", kRoundPairs}, {"V", docs}},
            {square * real(kRoundPairs), 2.0 * kDoubleBytes * square}, [=](Stream) {
              std::vector<PreferencePair> made(kRoundPairs);
              for (std::int32_t i = 0; i < kRoundPairs; ++i) made[i] = {2 * i, 2 * i + 1};
              const Array<double> m{at::eye(docs, make.options<double>())};
              const auto pairs = make.these(made);
              const auto corner = make.empty<double>({kRoundPairs, kRoundPairs});
              const auto inverse = make.empty<double>({kRoundPairs, kRoundPairs});
              const auto status = make.these(std::vector<device::CovarianceStatus>(1));
              return compared(
                  [=](Stream on) {
                    device::factor_pair_corner(on, docs, m, pairs, kRoundPairs, corner, inverse, status);
                  },
                  [=] { return at::eye(kRoundPairs, m.t.options()) / std::sqrt(3.0); },
                  [=](const at::Tensor& other) { return disagreement_of(at::tril(inverse.t), other); },
                  1e-14);
            });
}

void add_batches(Launches& table) {
  const Operands make{table.sizes};
  constexpr std::int64_t kBatch = 1024;
  const std::int64_t docs = table.sizes.docs, features = table.sizes.features;
  const double rows = 2.0 * real(kBatch);
  table.add("mini_batch/gather_batch", {{"k", kBatch}, {"d", features}},
            {0.0, 2.0 * kFloatBytes * rows * real(features) +
                      real(kBatch) * real(2 * sizeof(PairTerm) + sizeof(PairObservation))},
            [=](Stream) {
              std::vector<PairTerm> terms;
              std::vector<PairObservation> seen;
              for (std::int32_t i = 0; i < kBatch; ++i) {
                terms.push_back({2 * i, 2 * i + 1, 1.0, 1.0});
                seen.push_back({i, -1, -1, 1});
              }
              const auto from = make.rand<float>({2 * kBatch, features});
              const auto terms_there = make.these(terms);
              const auto seen_there = make.these(seen);
              const Array<std::int32_t> order{at::randperm(kBatch, make.options<std::int32_t>())};
              device::BatchCursor at_order;
              at_order.order = order;
              const auto cursor = make.these(std::vector{at_order});
              const auto to = make.empty<float>({kBatch, 2 * features});
              const auto batch_terms = make.these(terms);
              return compared(
                  [=](Stream on) {
                    device::gather_batch(on, {from, features, terms_there, seen_there}, cursor, kBatch, to,
                                         batch_terms);
                  },
                  [=] {
                    return from.t.view({kBatch, -1}).index_select(0, order.t);
                  },
                  to.t, 0.0);
            });
  table.add("mini_batch/fill_batch_incidence", {{"k", kBatch}}, {0.0, 2.0 * kIndexBytes * rows},
            [=](Stream) {
              const auto offsets = make.empty<std::int32_t>({2 * kBatch + 1});
              const auto ends = make.empty<std::int32_t>({2 * kBatch});
              return alone([=](Stream on) { device::fill_batch_incidence(on, kBatch, {offsets, ends}); });
            });
  constexpr std::int64_t kMembers = 10;
  table.add(
      "mini_batch/begin_batches", {{"N", kMembers}},
      {0.0, real(kMembers) * real(sizeof(device::BatchCursor))}, [=](Stream) {
        const auto order = make.empty<std::int32_t>({kMembers * kBatch});
        const auto cursors = make.these(std::vector<device::BatchCursor>(kMembers));
        return alone([=](Stream on) { device::begin_batches(on, kMembers, order, kBatch, {}, cursors); });
      });
  // The cursor is reset each time, as it would otherwise run past its tables.
  table.add("mini_batch/finish_batch", {}, {0.0, 2.0 * real(sizeof(device::BatchCursor))}, [=](Stream) {
    const auto loss = make.full<double>({1}, 1.0);
    const auto found = make.full<double>({2}, 0.0);
    const auto order = make.empty<std::int32_t>({kBatch});
    const auto cursor = make.these(std::vector<device::BatchCursor>(1));
    const auto rates = make.these(std::vector<StepRates>(2));
    return alone([=](Stream on) {
      device::begin_batches(on, 1, order, kBatch, {}, cursor);
      device::finish_batch(on, kBatch, loss, rates, cursor, {found, static_cast<double*>(found) + 1});
    });
  });
  table.add("mini_batch/note_bad_scores", {{"docs", docs}}, {0.0, kFloatBytes * real(docs)}, [=](Stream) {
    const auto scores = make.rand<float>({docs});
    const auto found = make.full<double>({2}, 0.0);
    const auto cursor = make.these(std::vector<device::BatchCursor>(1));
    return alone([=](Stream on) {
      device::note_bad_scores(on, cursor, docs, scores, {found, static_cast<double*>(found) + 1});
    });
  });
  constexpr std::int64_t kTerms = 256;
  table.add("replay/split_sample", {{"terms", kTerms}},
            {0.0, real(kTerms) * (real(sizeof(SampledTerm)) + 4.0 * kDoubleBytes)}, [=](Stream) {
              const auto sources = make.these(std::vector<SampledTerm>(kTerms));
              const auto parts = make.empty<double>({4, kTerms});
              return alone([=](Stream on) {
                double* to = parts;
                device::split_sample(on, sources, kTerms, 1, nullptr, nullptr, 0.0,
                                     {to, to + kTerms, to + 2 * kTerms, to + 3 * kTerms});
              });
            });
}

/// Operations on all p numbers once.
void add_passes(Launches& table) {
  const Operands make{table.sizes};
  const NetworkShape shape = table.shape;
  const std::int64_t p = table.p;
  const double numbers = kDoubleBytes * real(p);
  table.add("diagonal_covariance/reset_diagonal", {{"p", p}}, {0.0, 2.0 * numbers}, [=](Stream) {
    const auto diagonal = make.empty<double>({p});
    const auto root = make.empty<double>({p});
    return compared(
        [=](Stream on) {
          device::reset_diagonal(on, shape, kPriorLambda, 1.0, {diagonal, root});
        },
        [=] { return at::full_like(diagonal.t, kPriorLambda); }, diagonal.t, 0.0);
  });
  table.add(
      "inverse_covariance/reset_inverse_covariance", {{"p", p}}, {0.0, numbers * real(p)}, [=](Stream) {
        const auto inverse = make.empty<double>({p, p});
        return compared([=](Stream on) { device::reset_inverse_covariance(on, p, kPriorLambda, inverse); },
                        [=] { return at::eye(p, inverse.t.options()) / kPriorLambda; }, inverse.t, 1e-15);
      });
  table.add("inverse_covariance/fill_parameter_table", {{"p", p}}, {0.0, 2.0 * kIndexBytes * real(p)},
            [=](Stream) {
              const auto delta = make.empty<std::int32_t>({p});
              const auto input = make.empty<std::int32_t>({p});
              return alone([=](Stream on) { device::fill_parameter_table(on, shape, {delta, input}); });
            });
  table.add("theory_alpha/set_theory_alpha", {}, {0.0, 2.0 * kDoubleBytes}, [=](Stream) {
    const auto log_det = make.full<double>({1}, 1.0);
    const auto rule = make.these(std::vector<CertaintyRule>(1));
    return alone([=](Stream on) { device::set_theory_alpha(on, TheoryAlpha{}, log_det, rule); });
  });
  table.add("largest_curvature/step_from_curvature", {}, {0.0, 2.0 * kDoubleBytes}, [=](Stream) {
    const auto state = make.these(std::vector<device::CurvatureState>(1));
    const auto step = make.empty<double>({1});
    return alone([=](Stream on) { device::step_from_curvature(on, state, 1.0, 1.0, 2.0, step); });
  });
  table.add("replay/add_finite_gradient", {{"p", p}}, {0.0, 3.0 * numbers}, [=](Stream) {
    const auto gradient = make.rand<double>({p});
    const auto whole = make.rand<double>({p});
    return alone([=](Stream on) { device::add_finite_gradient(on, 1, p, gradient, whole); });
  });
  table.add("replay/subtract_from_whole", {{"p", p}}, {0.0, 3.0 * numbers}, [=](Stream) {
    const auto gradient = make.rand<double>({p});
    const auto whole = make.rand<double>({p});
    return alone([=](Stream on) { device::subtract_from_whole(on, 1, p, whole, gradient); });
  });
  table.add("largest_curvature/begin_curvature", {{"p", p}}, {2.0 * real(p), numbers}, [=](Stream) {
    const auto vector = make.randn<double>({p});
    const auto scratch = make.empty<double>({device::curvature_workspace(shape, 1)});
    const auto state = make.these(std::vector<device::CurvatureState>(1));
    device::CurvatureTask task;
    task.shape = shape;
    task.rows.docs = 1;
    task.fresh = vector;
    return alone([=](Stream on) { device::begin_curvature(on, task, vector, scratch, state); });
  });
}

/// The start of a training, and its stopping test between steps.
void add_starts(Launches& table, std::int64_t members) {
  const Operands make{table.sizes};
  const std::int64_t p = table.p;
  const double numbers = real(members * p);
  const CaseParameters parameters{{"N", members}, {"p", p}};
  table.add("optimizer_step/begin_training", parameters,
            {0.0, numbers * (kFloatBytes + 3.0 * kDoubleBytes)}, [=](Stream) {
              const auto theta = make.randn<float>({members, p});
              const auto state = make.empty<double>({3, members, p});
              return compared(
                  [=](Stream on) {
                    double* first = state;
                    device::begin_training(on, members * p, theta,
                                           {first, first + members * p, first + 2 * members * p});
                  },
                  [=] { return theta.t.to(at::kDouble); }, state.t.select(0, 0), 0.0);
            });
  table.add("optimizer_step/gradient_descent_step", parameters,
            {2.0 * numbers, numbers * (2.0 * kFloatBytes + kDoubleBytes)}, [=](Stream) {
              const auto theta = make.randn<float>({members, p});
              const auto gradient = make.randn<double>({members, p});
              const auto step = make.full<double>({members}, 1e-9);
              return alone(
                  [=](Stream on) { device::gradient_descent_step(on, members, p, gradient, step, theta); });
            });
}

/// Three layers: the forward pass, and the backward pass between hidden layers.
void add_deep(Launches& table, std::int64_t members) {
  DeviceSizes deep = table.sizes;
  deep.depth = 3;
  const NetworkShape shape = ntk_shape(deep.features, deep.width, deep.depth);
  const NetworkLayer middle = shape.layer(1);
  const CaseParameters parameters{
      {"N", members}, {"V", deep.docs}, {"m", deep.width}, {"d", deep.features}, {"L", 3}};
  const double docs = real(members * deep.docs);
  const double weights = real(middle.rows * middle.columns);
  table.add("relu_layers/forward", parameters,
            {2.0 * docs * real(shape.parameters()),
             kFloatBytes * (real(deep.docs * deep.features) + real(members * shape.parameters()) +
                            docs * real(shape.factors())),
             Arithmetic::kFloat},
            [=](Stream stream) {
              const auto made = make_docs(deep, stream, deep.docs, members);
              return alone([=](Stream on) {
                device::forward(made->products(on), made->stack(), made->features, made->view(),
                                made->out());
              });
            });
  table.add("relu_layers/backward_hidden", parameters,
            {2.0 * docs * weights,
             kFloatBytes * (real(members) * weights + docs * real(middle.rows + 2 * middle.columns)),
             Arithmetic::kFloat},
            [=](Stream stream) {
              const auto made = make_docs(deep, stream, deep.docs, members);
              return alone([=](Stream on) {
                device::backward_hidden(made->products(on), made->stack(), made->view());
              });
            });
}

/// Documents of an evaluation, both ways.
void add_evaluation(Launches& table, device::Multiplier multiplier, const std::string& name) {
  const DeviceSizes sizes = table.sizes;
  const double docs = real(sizes.scored_at_once);
  table.add(
      name, {{"V", sizes.scored_at_once}, {"m", sizes.width}, {"d", sizes.features}},
      {2.0 * docs * real(table.p),
       kFloatBytes * (docs * real(sizes.features + sizes.width + 1) + real(table.p)), Arithmetic::kFloat},
      [=](Stream stream) {
        const auto made = make_docs(sizes, stream, sizes.scored_at_once);
        const auto score = [=](Stream on, device::Multiplier by) {
          device::forward(made->products(on), made->stack(by), made->features, made->view(),
                          {made->scores, nullptr});
        };
        DeviceWork work = alone([=](Stream on) { score(on, multiplier); });
        work.disagreement = [=](Stream on) {
          score(on, device::Multiplier::kOwn);
          const at::Tensor expected = made->scores.t.clone();
          score(on, multiplier);
          return disagreement_of(made->scores.t, expected);
        };
        work.tolerance = 1e-5;  // sums in float32
        return work;
      });
}

}  // namespace

void add_small(Launches& table) {
  add_updates(table);
  add_batches(table);
  add_passes(table);
  for (const std::int64_t members : table.sizes.members) {
    add_starts(table, members);
    add_deep(table, members);
  }
  add_evaluation(table, device::Multiplier::kOwn, "evaluation/forward_by_kernels");
  add_evaluation(table, device::Multiplier::kLibrary, "evaluation/forward_by_library");
}

}  // namespace olrank
