#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/measurement.h"
#include "apps/bench/op_cases.h"
#include "core/ops/tangent_factors.h"

// What the cases of op_cases() are made of.
namespace olrank {

/// Pairs that a round brings.
constexpr std::int64_t kRoundPairs = 4;
constexpr double kDouble = sizeof(double);
constexpr double kFloat = sizeof(float);

inline double real(std::int64_t count) {
  return static_cast<double>(count);
}

inline std::size_t length(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

/// Numbers between 0 and 1; another place, other numbers.
std::vector<double> uniform_doubles(std::int64_t count, std::uint32_t place);
std::vector<float> uniform_floats(std::int64_t count, std::uint32_t place);

/// Documents with their network: what most operations work on.
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

/// What a case takes, and what its rate is held against.
struct CaseCost {
  CeilingKind ceiling = CeilingKind::kNone;
  double operations = 0.0;
  MemoryTraffic traffic;
};

/// The list while it grows.
class CaseList {
 public:
  using Parameters = std::vector<std::pair<std::string, std::int64_t>>;
  using Body = std::function<void()>;

  explicit CaseList(const OpSizes& sizes);

  const OpSizes& sizes() const { return sizes_; }
  /// The network of `sizes`.
  const NetworkShape& shape() const { return shape_; }
  /// Of a width at which the inverse of all parameters has its place: p = 2,192 at 136 features.
  const NetworkShape& narrow() const { return narrow_; }

  Parameters of_docs() const;
  Parameters of_pairs() const;

  /// Documents are made when a case is prepared, as all at once may not fit.
  std::function<std::shared_ptr<Documents>()> docs(const NetworkShape& shape, std::int64_t count,
                                                   std::uint32_t place = 1) const;
  std::function<std::shared_ptr<ExecutionContext>()> context() const;

  /// `prepare` returns the work; what it works on lives in the work.
  void add(const std::string& name, Parameters parameters, const CaseCost& cost,
           std::function<Body()> prepare);

  std::vector<BenchCase> take() { return std::move(cases_); }

 private:
  OpSizes sizes_;
  NetworkShape shape_;
  NetworkShape narrow_;
  std::vector<BenchCase> cases_;
};

/// Multiplications and additions of g_s·g(x), s a pair.
double pair_doc_operations(const NetworkShape& shape);

void add_product_cases(CaseList& list);
void add_network_cases(CaseList& list);
void add_gradient_cases(CaseList& list);
void add_kernel_cases(CaseList& list);
void add_factor_cases(CaseList& list);
void add_inverse_cases(CaseList& list);
void add_width_cases(CaseList& list);
void add_training_cases(CaseList& list);

}  // namespace olrank
