// The cases of `olrank bench ops` in Google Benchmark, with its filters, repetitions and comparisons, for
// work on a single operation. The cases blas/gemm_* are the ceilings.
#include <benchmark/benchmark.h>

#include <set>
#include <string>

#include "bench/cases/op_cases.h"

namespace olrank {
namespace {

std::string name_of(const BenchCase& work) {
  std::string name = work.name;
  for (const auto& [key, value] : work.parameters) name += "/" + key + ":" + std::to_string(value);
  return name;
}

void time_case(benchmark::State& state, const BenchCase& work) {
  const std::function<void()> body = work.prepare();
  body();
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  state.counters["flop/s"] = Counter(work.operations, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.counters["B/s"] =
      Counter(work.traffic.bytes(), Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

void register_cases() {
  std::set<std::string> names;
  for (const std::int64_t pairs : {1000, 5000}) {
    for (const BenchCase& work : op_cases({.pairs = pairs})) {
      if (!names.insert(name_of(work)).second) continue;
      benchmark::RegisterBenchmark(name_of(work).c_str(), time_case, work)->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  olrank::register_cases();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
