#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/measurement.h"
#include "core/ops/tangent_factors.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// Sizes of the measured operations; the defaults are the papers' network and a long query.
struct OpSizes {
  std::int64_t features = 136;  // d
  std::int64_t width = 100;     // m
  std::int64_t depth = 2;       // layers of weights
  std::int64_t docs = 120;      // V
  std::int64_t pairs = 5000;    // n, observed by the full covariance
  int threads = 1;
};

/// The operations of core/ops as "stem/function", with their counts and ceilings, and the pair widths built
/// on them.
std::vector<BenchCase> op_cases(const OpSizes& sizes);

}  // namespace olrank

// Building blocks of the cases in op_cases().
namespace olrank {

/// Pairs per round.
constexpr std::int64_t kRoundPairs = 4;
constexpr double kDouble = sizeof(double);
constexpr double kFloat = sizeof(float);

inline std::size_t length(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

/// Numbers between 0 and 1; `place` selects independent numbers.
template <class Number>
std::vector<Number> uniform(std::int64_t count, std::uint32_t place) {
  RngStream draws(make_key({.seed = 1, .purpose = Purpose::kProbe}), place);
  std::vector<Number> values(length(count));
  for (Number& value : values) value = static_cast<Number>(draws.uniform());
  return values;
}

/// Documents and their network, the input of most operations.
struct Documents {
  Documents(const NetworkShape& of_shape, std::int64_t count, std::uint32_t place, int threads);
  FeatureMatrix matrix() const { return {features.data(), docs, shape.inputs}; }
  TangentFactors rows() const { return {factors.data(), docs}; }

  NetworkShape shape;
  ExecutionContext context;
  std::vector<float> features;
  std::vector<float> theta;
  std::vector<float> factors;
  std::int64_t docs;
};

/// The work of a case, and the ceiling that its rate is compared with.
struct CaseCost {
  CeilingKind ceiling = CeilingKind::kNone;
  double operations = 0.0;
  MemoryTraffic traffic;
};

/// Collects cases.
struct CaseList {
  using Parameters = std::vector<std::pair<std::string, std::int64_t>>;
  using Body = std::function<void()>;

  explicit CaseList(const OpSizes& of);

  Parameters of_docs() const;
  Parameters of_pairs() const;

  /// Creates documents when a case is prepared; those of all cases at once might not fit into memory.
  std::function<std::shared_ptr<Documents>()> docs(const NetworkShape& of, std::int64_t count,
                                                   std::uint32_t place = 1) const;
  std::function<std::shared_ptr<ExecutionContext>()> context() const;

  /// `prepare` returns the work, which owns its data.
  void add(const std::string& name, Parameters parameters, const CaseCost& cost,
           std::function<Body()> prepare);

  OpSizes sizes;
  NetworkShape shape;   // given by `sizes`
  NetworkShape narrow;  // whose p×p inverse covariance fits into memory: p = 2,192 at 136 features
  std::vector<BenchCase> cases;
};

/// Multiplications and additions of g_s·g(x) for a pair s.
double pair_doc_operations(const NetworkShape& shape);

void add_product_cases(CaseList& list);
void add_network_cases(CaseList& list);
void add_gradient_cases(CaseList& list);
void add_kernel_cases(CaseList& list);
void add_list_cases(CaseList& list);
void add_factor_cases(CaseList& list);
void add_inverse_cases(CaseList& list);
void add_width_cases(CaseList& list);
void add_training_cases(CaseList& list);

/// Parsing, inspecting, the binary copy, the metrics and ranking by a model, on a generated data set as
/// text or on a plain text file. Files are written to `folder`, which must exist. Bytes are those of the
/// text, the copy and the scores.
std::vector<BenchCase> data_cases(const std::string& source, int threads,
                                  const std::filesystem::path& folder);

}  // namespace olrank
