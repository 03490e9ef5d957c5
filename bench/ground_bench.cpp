// The ground that everything stands on, with Google Benchmark: random draws, and the matrix products whose
// rate is the ceiling of what is built from them.
#include <benchmark/benchmark.h>

#include <vector>

#include "core/ops/blas.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

RngStream stream() {
  return {make_key({.seed = 1, .purpose = Purpose::kProbe}), 0};
}

void draw_bits(benchmark::State& state) {
  RngStream draws = stream();
  for (auto _ : state) benchmark::DoNotOptimize(draws.next_bits());
  state.SetItemsProcessed(state.iterations());
}

void draw_index(benchmark::State& state) {
  RngStream draws = stream();
  for (auto _ : state) benchmark::DoNotOptimize(draws.index(120));
  state.SetItemsProcessed(state.iterations());
}

void draw_normal(benchmark::State& state) {
  RngStream draws = stream();
  for (auto _ : state) benchmark::DoNotOptimize(draws.normal());
  state.SetItemsProcessed(state.iterations());
}

/// A square product of side range(0); the counter is operations a second.
template <class Number>
void multiply(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  std::vector<Number> a(static_cast<std::size_t>(n * n), Number{0.5});
  std::vector<Number> c(a.size());
  for (auto _ : state) {
    blas::gemm(blas::Transpose::kNo, blas::Transpose::kNo, n, n, n, Number{1}, a.data(), n, a.data(), n,
               Number{0}, c.data(), n);
    benchmark::ClobberMemory();
  }
  const auto operations = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  state.counters["flop/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate,
                                                benchmark::Counter::kIs1000);
}

BENCHMARK(draw_bits);
BENCHMARK(draw_index);
BENCHMARK(draw_normal);
BENCHMARK_TEMPLATE(multiply, float)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(multiply, double)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace olrank

BENCHMARK_MAIN();
