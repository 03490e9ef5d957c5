// Scoring through the C interface, in Google Benchmark: calls with one document and with 50, by a network
// with m = 16 that takes its inputs as they are or scaled by query; one thread.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "olrank/c_api.h"

namespace {

void check(benchmark::State& state, olrank_status status) {
  if (status != OLRANK_OK) state.SkipWithError(olrank_last_error());
}

/// A model that has learned, so that its scores are not all 0.
olrank_model* model_of(benchmark::State& state, std::int64_t features, const char* normalise,
                       const std::vector<float>& values) {
  const std::string file = std::filesystem::temp_directory_path() / "olrank-score-bench.safetensors";
  const char* const settings[] = {"kind", "olranknet", "width", "16", "normalise", normalise, nullptr};
  olrank_ranker* ranker = nullptr;
  olrank_list* list = nullptr;
  olrank_model* model = nullptr;
  check(state, olrank_ranker_create(features, settings, &ranker));
  check(state, olrank_ranker_rank(ranker, values.data(), 50, nullptr, 0, &list));
  const std::vector<std::uint8_t> clicks = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0};
  check(state, olrank_ranker_learn(ranker, list, clicks.data(), nullptr, 10));
  check(state, olrank_ranker_save_model(ranker, file.c_str()));
  check(state, olrank_model_load(file.c_str(), 0, &model));
  olrank_list_free(list);
  olrank_ranker_free(ranker);
  std::filesystem::remove(file);
  return model;
}

void score(benchmark::State& state, const char* normalise) {
  const std::int64_t features = state.range(0);
  const std::int64_t docs = state.range(1);
  std::vector<float> values(50 * features);
  for (float& value : values) value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
  std::vector<double> scores(docs);
  olrank_model* model = model_of(state, features, normalise, values);
  for (auto _ : state)
    check(state, olrank_model_score(model, values.data(), docs, nullptr, 0, scores.data()));
  state.counters["s/document"] =
      benchmark::Counter(static_cast<double>(docs),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  olrank_model_free(model);
}

}  // namespace

BENCHMARK_CAPTURE(score, none, "none")->ArgsProduct({{46, 136}, {1, 50}});
BENCHMARK_CAPTURE(score, query_minmax, "query-minmax")->ArgsProduct({{46, 136}, {1, 50}});
BENCHMARK_MAIN();
