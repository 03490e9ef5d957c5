#include "bench/cases/data_cases.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/data/dataset_cache.h"
#include "core/data/inspection.h"
#include "core/data/letor_reader.h"
#include "core/data/letor_stream.h"
#include "core/data/synthetic.h"
#include "core/data/synthetic_source.h"
#include "core/io/atomic_file.h"
#include "core/metrics/evaluator.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// A data set, as text and with scores.
struct DataWork {
  DataWork(const std::string& source, int threads) : context(threads), data(load(source)) {
    if (is_synthetic(source)) {
      write_letor(data, {}, [this](std::string_view piece) { text += piece; });
    } else {
      text = read_file(source);
    }
    RngStream draws(make_key({.seed = 1, .purpose = Purpose::kProbe}), 0);
    for (std::int64_t doc = 0; doc < data.docs(); ++doc)
      scores.push_back(static_cast<float>(draws.uniform()));
  }
  Dataset load(const std::string& source) {
    return is_synthetic(source) ? make_synthetic(source, context).train
                                : read_letor(source, {}, context.pool());
  }

  ExecutionContext context;
  Dataset data;
  std::string text;
  std::vector<float> scores;
};

/// All that reading a text costs at least in anyone's loop: every feature number and value by
/// std::from_chars.
double sum_of_numbers(std::string_view text) {
  double sum = 0.0;
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p < end) {
    const char* const colon = static_cast<const char*>(std::memchr(p, ':', end - p));
    if (colon == nullptr) break;
    const char* digits = colon;
    while (digits > p && digits[-1] > ' ') --digits;
    std::int64_t number = 0;
    float value = 0.0F;
    std::from_chars(digits, colon, number);
    p = std::from_chars(colon + 1, end, value).ptr;
    sum += static_cast<double>(number) + static_cast<double>(value);
  }
  return sum;
}

}  // namespace

std::vector<BenchCase> data_cases(const std::string& source, int threads, const fs::path& folder) {
  const auto work = std::make_shared<DataWork>(source, threads);
  const Dataset& data = work->data;
  const fs::path file = folder / "data.txt";
  write_file_atomically(file, work->text);
  const std::vector<std::pair<std::string, std::int64_t>> sizes = {
      {"docs", data.docs()}, {"features", data.features()}, {"threads", threads}};
  const double matrix = static_cast<double>(data.docs() * data.features()) * sizeof(float);
  const double text = static_cast<double>(work->text.size());
  std::vector<BenchCase> cases;
  cases.push_back({"data/parse", sizes, 0.0, {text, 0.0, matrix}, CeilingKind::kMemory, [work] {
                     return [work] { read_letor_bytes(work->text, "text", {}, work->context.pool()); };
                   }});
  cases.push_back(
      {"data/inspect",
       sizes,
       0.0,
       {text, 0.0, 0.0},
       CeilingKind::kOwn,
       [work, file] { return [work, file] { inspect_file(file.string(), {}, work->context); }; },
       "from_chars",
       [work, sum = 0.0]() mutable { sum += sum_of_numbers(work->text); }});
  cases.push_back(
      {"data/read_copy", sizes, 0.0, {matrix, 0.0, matrix}, CeilingKind::kMemory, [work, file, folder] {
         const DatasetCache cache(folder / "copies");
         cache.read(file.string(), {}, work->context.pool());  // writes the copy
         return [work, file, cache] { cache.read(file.string(), {}, work->context.pool()); };
       }});
  const double scores = static_cast<double>(data.docs()) * sizeof(float);
  cases.push_back({"data/evaluate", sizes, 0.0, {2.0 * scores, 0.0, 0.0}, CeilingKind::kMemory, [work] {
                     const auto evaluator = std::make_shared<Evaluator>(MetricOptions{});
                     return [work, evaluator] {
                       evaluator->evaluate(work->data, work->scores, work->context);
                     };
                   }});
  return cases;
}

}  // namespace olrank
