// What widths and training cost, with Google Benchmark, at the size of the papers' network (m = 100, d =
// 136) and a query of 120 documents. Counters: operations as counted, their rate by processor seconds of
// all threads (a busy machine leaves it alone; the time column is the wall's), and its share of what a
// 1000³ product reaches in the same run: in double for widths, in single precision for training.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include "core/ops/blas.h"
#include "core/ops/diagonal_covariance.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/tangent_kernel.h"
#include "models/neural/p2neurrank.h"
#include "models/posterior/posterior.h"
#include "models/posterior/posterior_plan.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocs = 120;
const NetworkShape kShape = ntk_shape(136, 100, 2);

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Operations a processor second of a 1000³ product on one thread: the best of several, measured once.
template <class Number>
double ceiling() {
  static const double rate = [] {
    constexpr std::int64_t kSide = 1000;
    const std::vector<Number> a(kSide * kSide, Number{0.5});
    std::vector<Number> c(a.size());
    double best = 0.0;
    for (int repeat = 0; repeat < 20; ++repeat) {
      const double start = processor_seconds();
      blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, kSide, kSide, kSide, Number{1}, a.data(),
                 kSide, a.data(), kSide, Number{0}, c.data(), kSide);
      best = std::max(best, 2e9 / (processor_seconds() - start));
    }
    return best;
  }();
  return rate;
}

std::vector<float> uniform_features(std::int64_t docs, std::uint32_t place) {
  RngStream draws(make_key({.seed = 1, .purpose = Purpose::kProbe}), place);
  std::vector<float> features(static_cast<std::size_t>(docs * kShape.inputs));
  for (float& value : features) value = static_cast<float>(draws.uniform());
  return features;
}

std::vector<float> initial_theta(const NetworkShape& shape = kShape) {
  std::vector<float> theta(static_cast<std::size_t>(shape.parameters()));
  initialise(shape, Initialisation::kSymmetric, make_key({.seed = 1, .purpose = Purpose::kInitialisation}),
             theta);
  return theta;
}

std::vector<float> factors_of(ExecutionContext& context, std::int64_t docs, std::uint32_t place,
                              const NetworkShape& shape = kShape) {
  const std::vector<float> features = uniform_features(docs, place);
  std::vector<float> factors(static_cast<std::size_t>(docs * shape.factors()));
  tangent_factors(context, shape, initial_theta(shape), {features.data(), docs, shape.inputs}, factors);
  return factors;
}

/// A posterior that has seen `pairs` pairs of random documents.
std::unique_ptr<Posterior> posterior_with(ExecutionContext& context, Covariance covariance,
                                          CovarianceForm form, std::int64_t pairs,
                                          const NetworkShape& shape = kShape) {
  PosteriorSpec spec;
  spec.shape = shape;
  spec.covariance = covariance;
  spec.form = form;
  spec.scale = 1.0 / static_cast<double>(shape.width);
  spec.checks.every = 0;
  auto posterior = make_posterior(spec);
  for (std::int64_t done = 0; done < pairs;) {
    const std::int64_t count = std::min<std::int64_t>(500, pairs - done);
    const std::vector<float> factors =
        factors_of(context, 2 * count, static_cast<std::uint32_t>(done + 7), shape);
    std::vector<PreferencePair> added;
    added.reserve(static_cast<std::size_t>(count));
    for (std::int32_t pair = 0; pair < count; ++pair) added.push_back({2 * pair, 2 * pair + 1});
    posterior->observe(context, {factors.data(), 2 * count}, added);
    done += count;
  }
  return posterior;
}

/// Times `body`, which takes `operations`, most of them products of `Number`.
template <class Number = double, class Body>
void timed(benchmark::State& state, double operations, const Body& body) {
  double seconds = 0.0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    const double processor_start = processor_seconds();
    body();
    seconds += processor_seconds() - processor_start;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
  }
  const double rate = operations * static_cast<double>(state.iterations()) / seconds;
  state.counters["GFLOP"] = operations * 1e-9;
  state.counters["GFLOP/s"] = rate * 1e-9;
  state.counters["share"] = rate / ceiling<Number>();
}

void multiply(benchmark::State& state) {
  std::vector<double> a(1000 * 1000, 0.5);
  std::vector<double> c(a.size());
  timed(state, 2e9, [&] {
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, 1000, 1000, 1000, 1.0, a.data(), 1000, a.data(),
               1000, 0.0, c.data(), 1000);
  });
}

void factors(benchmark::State& state) {
  ExecutionContext context;
  const std::vector<float> features = uniform_features(kDocs, 1);
  const std::vector<float> theta = initial_theta();
  std::vector<float> out(static_cast<std::size_t>(kDocs * kShape.factors()));
  timed(state, 2.0 * kDocs * 136 * 100, [&] {
    tangent_factors(context, kShape, theta, {features.data(), kDocs, 136}, out);
    benchmark::ClobberMemory();
  });
}

/// n pairs, threads.
void dual_widths(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto threads = static_cast<int>(state.range(1));
  ExecutionContext context({}, threads);
  const auto posterior = posterior_with(context, Covariance::kFull, CovarianceForm::kDual, n);
  const std::vector<float> docs = factors_of(context, kDocs, 1);
  std::vector<double> width_sq(kDocs * kDocs);
  timed(state, dual_cost(kShape, n, kDocs, 0).operations, [&] {
    posterior->width_sq(context, {docs.data(), kDocs}, width_sq);
    benchmark::ClobberMemory();
  });
}

void dual_kernels(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  ExecutionContext context;
  const std::vector<float> history = factors_of(context, 2 * n, 2);
  const std::vector<float> docs = factors_of(context, kDocs, 1);
  std::vector<double> kernel(static_cast<std::size_t>(n * kDocs));
  // Both documents of a pair in the hidden layer, their difference in the output layer.
  const double operations = 2.0 * static_cast<double>(n) * kDocs * (2.0 * (100 + 136) + 100);
  timed(state, operations, [&] {
    pair_doc_kernel(context, kShape, {history.data(), 2 * n}, {docs.data(), kDocs}, 1.0, kernel.data(),
                    kDocs);
    benchmark::ClobberMemory();
  });
}

/// A round's 4 pairs after n.
void dual_observe(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  ExecutionContext context;
  const auto posterior = posterior_with(context, Covariance::kFull, CovarianceForm::kDual, n);
  const std::vector<float> docs = factors_of(context, 8, 1);
  const std::vector<PreferencePair> pairs = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  const auto size = static_cast<double>(n);
  timed(state, 2.0 * size * size * 4.0 + 4.0 * size * 8.0 * 337.0, [&] {
    posterior->observe(context, {docs.data(), 8}, pairs);
  });
}

/// Width 16, p = 2,192: where the form by parameters has its place.
const NetworkShape kNarrow = ntk_shape(136, 16, 2);

void primal_widths(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  ExecutionContext context({}, threads);
  const auto posterior = posterior_with(context, Covariance::kFull, CovarianceForm::kPrimal, 500, kNarrow);
  const std::vector<float> docs = factors_of(context, kDocs, 1, kNarrow);
  std::vector<double> width_sq(kDocs * kDocs);
  timed(state, primal_cost(kNarrow, 0, kDocs, 0).operations, [&] {
    posterior->width_sq(context, {docs.data(), kDocs}, width_sq);
    benchmark::ClobberMemory();
  });
}

void primal_observe(benchmark::State& state) {
  ExecutionContext context;
  const auto posterior = posterior_with(context, Covariance::kFull, CovarianceForm::kPrimal, 500, kNarrow);
  const std::vector<float> docs = factors_of(context, 8, 1, kNarrow);
  const std::vector<PreferencePair> pairs = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  timed(state, primal_cost(kNarrow, 0, 0, 4).operations, [&] {
    posterior->observe(context, {docs.data(), 8}, pairs);
  });
}

void diagonal_widths(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  ExecutionContext context({}, threads);
  const auto posterior = posterior_with(context, Covariance::kDiagonal, CovarianceForm::kAuto, 100);
  const std::vector<float> docs = factors_of(context, kDocs, 1);
  std::vector<double> width_sq(kDocs * kDocs);
  // As the textbook counts: V²p multiply-adds.
  const double operations = 2.0 * kDocs * kDocs * static_cast<double>(kShape.parameters());
  timed(state, operations, [&] {
    posterior->width_sq(context, {docs.data(), kDocs}, width_sq);
    benchmark::ClobberMemory();
  });
  // What is multiplied once units are left out where they are dead.
  double active = 100.0 * kDocs * kDocs;
  const NetworkLayer layer = kShape.layer(0);
  for (std::int64_t unit = 0; unit < layer.rows; ++unit) {
    double alive = 0.0;
    for (std::int64_t doc = 0; doc < kDocs; ++doc) {
      if (docs[static_cast<std::size_t>(doc * kShape.factors() + layer.delta + unit)] != 0.0F) ++alive;
    }
    active += 136.0 * alive * alive;
  }
  state.counters["done"] = 2.0 * active / operations;
}

/// One step of n pairs with two documents of their own each: 2 passes of 2p operations a document.
void training_step(benchmark::State& state) {
  const std::int64_t docs = 2 * state.range(0);
  ExecutionContext context;
  const std::vector<float> features = uniform_features(docs, 3);
  std::vector<float> theta = initial_theta();
  const std::vector<float> first = theta;
  std::vector<PairTerm> terms;
  terms.reserve(static_cast<std::size_t>(state.range(0)));
  for (std::int32_t doc = 0; doc < docs; doc += 2) terms.push_back({doc, doc + 1, 1.0, 1.0});
  std::vector<double> gradient(theta.size());
  timed<float>(state, 4.0 * static_cast<double>(docs * kShape.parameters()), [&] {
    pair_gradient(context, kShape, theta, {features.data(), docs, 136}, terms, {1.0, 500.0, first},
                  gradient);
    gradient_descent_step(1e-6, gradient, theta);
  });
}

/// A round's training of an ensemble with n pairs behind it: members, n, threads.
void ensemble_round(benchmark::State& state) {
  const std::int64_t members = state.range(0);
  const std::int64_t docs = 2 * state.range(1);
  RankerSettings settings = RankerSettings::defaults(RankerKind::kP2NeurRank, ProtocolName::kPaper);
  settings.posterior.members = members;
  P2NeurRank ranker(136, settings, TrialKeys::of(1, 1, "perfect"), docs);
  ExecutionContext execution({}, static_cast<int>(state.range(2)));
  StageClock clock;
  RoundContext context{execution, clock};
  const std::vector<float> features = uniform_features(docs, 3);
  std::vector<std::int32_t> shown(static_cast<std::size_t>(docs));
  std::iota(shown.begin(), shown.end(), 0);
  std::vector<std::uint8_t> clicks;
  for (std::int64_t doc = 0; doc < docs; ++doc) clicks.push_back(doc % 4 < 2 ? doc % 2 : 1 - doc % 2);
  const QueryDocs query{0, 0, {features.data(), docs, 136}};
  std::uint32_t round = 1;
  ranker.learn(context, {round, query, shown, clicks});
  // 20 steps of 2 passes over all documents.
  const double steps = 20.0 * static_cast<double>(members);
  timed<float>(state, steps * 4.0 * static_cast<double>(docs * kShape.parameters()), [&] {
    ++round;
    ranker.learn(context, {round, query, std::span(shown).first(2), std::span(clicks).first(2)});
  });
}

BENCHMARK(multiply)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(factors)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(dual_kernels)->Arg(1000)->Arg(5000)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(dual_widths)
    ->Args({1000, 1})
    ->Args({5000, 1})
    ->Args({1000, 2})
    ->Args({5000, 2})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(dual_observe)
    ->Arg(1000)
    ->Arg(5000)
    ->Iterations(50)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(training_step)->Arg(500)->Arg(5000)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(ensemble_round)
    ->ArgsProduct({{1, 10}, {500, 5000}, {1, 2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(primal_widths)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(primal_observe)->Iterations(50)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(diagonal_widths)->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace olrank

BENCHMARK_MAIN();
