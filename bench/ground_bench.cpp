// Random draws, in Google Benchmark.
#include <benchmark/benchmark.h>

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

BENCHMARK(draw_bits);
BENCHMARK(draw_index);
BENCHMARK(draw_normal);

}  // namespace
}  // namespace olrank

BENCHMARK_MAIN();
