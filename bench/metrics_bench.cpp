// Documents evaluated per second, compared with copying the scores (memcpy) and sorting them per query
// (std::sort of plain floats, a near lower bound for a ranking, which must also track indices). Usage:
// metrics_bench [QUERIES [REPETITIONS]]; prints JSON.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/list_metrics.h"
#include "core/random/rng_stream.h"
#include "core/version.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

struct Memory {
  std::vector<std::uint8_t> grades;
  std::vector<std::int64_t> offsets{0};
};

/// Lists of 1 to 239 documents, 120 on average, with the grades of MSLR-WEB: 52/32/13/2/1 %.
Dataset make_data(std::int64_t queries) {
  RngStream coins(make_key({.seed = 1, .purpose = Purpose::kSynthetic}), 0);
  auto memory = std::make_shared<Memory>();
  Dataset::Contents contents;
  for (std::int64_t query = 0; query < queries; ++query) {
    for (std::uint32_t left = 1 + coins.index(239); left > 0; --left) {
      const std::uint32_t percent = coins.index(100);
      memory->grades.push_back(percent < 52   ? 0
                               : percent < 84 ? 1
                               : percent < 97 ? 2
                               : percent < 99 ? 3
                                              : 4);
    }
    memory->offsets.push_back(std::ssize(memory->grades));
    contents.qids.push_back(std::to_string(query));
  }
  contents.grades = memory->grades;
  contents.offsets = memory->offsets;
  contents.memory = memory;
  return Dataset(std::move(contents));
}

struct Timing {
  double median = 0.0;  // seconds
  double spread = 0.0;  // of the middle half, relative to the median
};

Timing time_of(int repetitions, const std::function<void()>& work) {
  work();
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t count = seconds.size();
  const double median = seconds[count / 2];
  return {median, (seconds[count * 3 / 4] - seconds[count / 4]) / median};
}

/// NDCG@10 in the obvious way, to check the result before timing.
double slow_ndcg(const Dataset& data, const std::vector<float>& scores) {
  double sum = 0.0;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    std::vector<std::size_t> order(data.docs_of(query));
    std::iota(order.begin(), order.end(), static_cast<std::size_t>(data.offset(query)));
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    std::vector<int> list;
    list.reserve(order.size());
    for (const std::size_t doc : order) list.push_back(data.all_grades()[doc]);
    const auto dcg = [](const std::vector<int>& grades) {
      double value = 0.0;
      for (std::size_t rank = 0; rank < std::min<std::size_t>(10, grades.size()); ++rank) {
        value += (std::exp2(grades[rank]) - 1.0) / std::log2(static_cast<double>(rank + 2));
      }
      return value;
    };
    const double shown = dcg(list);
    std::sort(list.begin(), list.end(), std::greater<>());
    const double ideal = dcg(list);
    sum += ideal > 0.0 ? shown / ideal : 0.0;
  }
  return sum / static_cast<double>(data.queries());
}

class Bench {
 public:
  Bench(std::int64_t queries, int repetitions) : data_(make_data(queries)), repetitions_(repetitions) {
    RngStream coins(make_key({.seed = 1, .purpose = Purpose::kSynthetic}), 1);
    for (std::int64_t doc = 0; doc < data_.docs(); ++doc)
      scores_.push_back(static_cast<float>(coins.normal()));
    wide_.assign(scores_.begin(), scores_.end());
    work_.resize(scores_.size());
  }

  ordered_json run() {
    check();
    copy_ = time_of(repetitions_,
                    [&] { std::memcpy(work_.data(), scores_.data(), scores_.size() * sizeof(float)); });
    sort_ = time_of(repetitions_, [&] {
      std::memcpy(work_.data(), scores_.data(), scores_.size() * sizeof(float));
      for (std::int64_t query = 0; query < data_.queries(); ++query) {
        std::sort(work_.begin() + data_.offset(query), work_.begin() + data_.offset(query + 1));
      }
    });
    ordered_json rows = ordered_json::array();
    rows.push_back(row("memcpy of the scores", 1, copy_));
    rows.push_back(row("std::sort of the scores", 1, sort_));
    for (const int threads : thread_counts()) {
      rows.push_back(row("ndcg@10, float", threads, time_metrics<float>(MetricSet::kTop, {10}, threads)));
      rows.push_back(
          row("all metrics, float", threads, time_metrics<float>(MetricSet::kAll, {1, 3, 5, 10}, threads)));
      rows.push_back(row("all metrics, double", threads,
                         time_metrics<double>(MetricSet::kAll, {1, 3, 5, 10}, threads)));
    }
    return {{"version", version()},        {"revision", revision()},
            {"compiler", compiler()},      {"cores", available_threads()},
            {"queries", data_.queries()},  {"docs", data_.docs()},
            {"repetitions", repetitions_}, {"rows", rows}};
  }

 private:
  static std::vector<int> thread_counts() {
    return available_threads() > 1 ? std::vector<int>{1, available_threads()} : std::vector<int>{1};
  }

  void check() const {
    ExecutionContext context;
    MetricOptions options;
    options.cutoffs = {10};
    const double fast = evaluate(data_, std::span<const float>(scores_), options, context).ndcg[0];
    const double slow = slow_ndcg(data_, scores_);
    // Both are sums with one term per query.
    if (!(std::abs(fast - slow) <= 1e-16 * static_cast<double>(data_.queries()))) {
      throw NumericError(fmt::format("NDCG@10 is {} but should be {}; nothing was timed.", fast, slow));
    }
  }

  template <class Score>
  Timing time_metrics(MetricSet metrics, std::vector<std::int64_t> cutoffs, int threads) const {
    ExecutionContext context(threads);
    MetricOptions options;
    options.metrics = metrics;
    options.cutoffs = std::move(cutoffs);
    Evaluator evaluator(options);
    if constexpr (std::is_same_v<Score, float>) {
      return time_of(repetitions_,
                     [&] { evaluator.evaluate(data_, std::span<const float>(scores_), context); });
    } else {
      return time_of(repetitions_,
                     [&] { evaluator.evaluate(data_, std::span<const double>(wide_), context); });
    }
  }

  ordered_json row(const std::string& name, int threads, const Timing& timing) const {
    return {{"name", name},
            {"threads", threads},
            {"docs_per_second", static_cast<double>(data_.docs()) / timing.median},
            {"spread", timing.spread},
            {"of_memcpy", copy_.median / timing.median},
            {"of_sort", sort_.median / timing.median}};
  }

  Dataset data_;
  int repetitions_;
  std::vector<float> scores_;
  std::vector<double> wide_;
  std::vector<float> work_;
  Timing copy_;
  Timing sort_;
};

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  try {
    const long queries = argc > 1 ? std::atol(argv[1]) : 5000;
    const int repetitions = argc > 2 ? std::atoi(argv[2]) : 15;
    if (queries < 1 || repetitions < 1)
      throw olrank::InvalidArgument("Usage: metrics_bench [QUERIES [REPETITIONS]]");
    fmt::print("{}\n", olrank::Bench(queries, repetitions).run().dump(2));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "metrics_bench: {}\n", error.what());
    return static_cast<int>(olrank::exit_code_of(error));
  }
}
