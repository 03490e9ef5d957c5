// Scoring through the C interface: calls with one document and with 50, by a network with m = 16 that takes
// its inputs as they are or scaled by query; one thread.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/measurement.h"
#include "core/error.h"
#include "olrank/c_api.h"

namespace olrank {
namespace {

constexpr std::int64_t kMostDocs = 50;

void check(olrank_status status) {
  if (status != OLRANK_OK) throw Error(olrank_last_error());
}

/// A model that has learned, so that its scores are not all 0.
std::shared_ptr<olrank_model> model_of(std::int64_t features, const std::string& normalise,
                                       const std::vector<float>& values) {
  const std::string file = std::filesystem::temp_directory_path() / "olrank-score-bench.safetensors";
  const char* const settings[] = {"kind",      "olranknet",       "width", "16",
                                  "normalise", normalise.c_str(), nullptr};
  olrank_ranker* ranker = nullptr;
  olrank_list* list = nullptr;
  olrank_model* model = nullptr;
  check(olrank_ranker_create(features, settings, &ranker));
  check(olrank_ranker_rank(ranker, values.data(), kMostDocs, nullptr, 0, &list));
  const std::vector<std::uint8_t> clicks = {0, 1, 0, 0, 1, 0, 0, 0, 0, 0};
  check(olrank_ranker_learn(ranker, list, clicks.data(), nullptr, 10));
  check(olrank_ranker_save_model(ranker, file.c_str()));
  check(olrank_model_load(file.c_str(), 0, &model));
  olrank_list_free(list);
  olrank_ranker_free(ranker);
  std::filesystem::remove(file);
  return {model, olrank_model_free};
}

BenchCase score_case(const std::string& normalise, std::int64_t features, std::int64_t docs) {
  BenchCase found;
  found.name = normalise;
  found.parameters = {{"d", features}, {"documents", docs}};
  found.prepare = [normalise, features, docs] {
    std::vector<float> values(kMostDocs * features);
    for (float& value : values) value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX);
    return [model = model_of(features, normalise, values), values, docs,
            scores = std::vector<double>(docs)]() mutable {
      check(olrank_model_score(model.get(), values.data(), docs, nullptr, 0, scores.data()));
    };
  };
  return found;
}

}  // namespace
}  // namespace olrank

int main() {
  for (const char* normalise : {"none", "query-minmax"}) {
    for (const std::int64_t features : {46, 136}) {
      for (const std::int64_t docs : {1, 50}) {
        const olrank::Measurement measured = measure(olrank::score_case(normalise, features, docs));
        fmt::print("{}: {:.0f} ns a document\n", measured.identity(),
                   1e9 * measured.seconds.median / static_cast<double>(docs));
      }
    }
  }
}
