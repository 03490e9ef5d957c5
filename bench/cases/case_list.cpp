#include "bench/cases/case_list.h"

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

constexpr std::int64_t kNarrow = 16;

template <class Number>
std::vector<Number> uniform(std::int64_t count, std::uint32_t place) {
  RngStream draws(make_key({.seed = 1, .purpose = Purpose::kProbe}), place);
  std::vector<Number> values(length(count));
  for (Number& value : values) value = static_cast<Number>(draws.uniform());
  return values;
}

}  // namespace

std::vector<double> uniform_doubles(std::int64_t count, std::uint32_t place) {
  return uniform<double>(count, place);
}

std::vector<float> uniform_floats(std::int64_t count, std::uint32_t place) {
  return uniform<float>(count, place);
}

Documents::Documents(const NetworkShape& of_shape, std::int64_t count, std::uint32_t place, int threads)
    : shape(of_shape),
      context(threads),
      features(uniform_floats(count * shape.inputs, place)),
      theta(length(shape.parameters())),
      factors(length(count * shape.factors())),
      docs(count) {
  initialise(shape, Initialisation::kSymmetric, make_key({.seed = 1, .purpose = Purpose::kInitialisation}),
             theta);
  theta.back() *= 2.0F;  // an untrained network scores 0 without computing anything
  tangent_factors(context, shape, theta, matrix(), factors);
}

CaseList::CaseList(const OpSizes& sizes)
    : sizes_(sizes),
      shape_(ntk_shape(sizes.features, sizes.width, sizes.depth)),
      narrow_(ntk_shape(sizes.features, kNarrow, sizes.depth)) {}

CaseList::Parameters CaseList::of_docs() const {
  return {{"V", sizes_.docs}, {"m", sizes_.width}, {"d", sizes_.features}};
}

CaseList::Parameters CaseList::of_pairs() const {
  return {{"n", sizes_.pairs}, {"m", sizes_.width}, {"d", sizes_.features}};
}

std::function<std::shared_ptr<Documents>()> CaseList::docs(const NetworkShape& shape, std::int64_t count,
                                                           std::uint32_t place) const {
  return [shape, count, place, threads = sizes_.threads] {
    return std::make_shared<Documents>(shape, count, place, threads);
  };
}

std::function<std::shared_ptr<ExecutionContext>()> CaseList::context() const {
  return [threads = sizes_.threads] { return std::make_shared<ExecutionContext>(threads); };
}

void CaseList::add(const std::string& name, Parameters parameters, const CaseCost& cost,
                   std::function<Body()> prepare) {
  if (sizes_.threads > 1) parameters.emplace_back("threads", sizes_.threads);
  cases_.push_back(
      {name, std::move(parameters), cost.operations, cost.traffic, cost.ceiling, std::move(prepare)});
}

std::vector<BenchCase> op_cases(const OpSizes& sizes) {
  CaseList list(sizes);
  add_product_cases(list);
  add_network_cases(list);
  add_gradient_cases(list);
  add_kernel_cases(list);
  add_factor_cases(list);
  add_inverse_cases(list);
  add_width_cases(list);
  add_training_cases(list);
  add_list_cases(list);
  add_fair_cases(list);
  return list.take();
}

}  // namespace olrank
