#include "sim/cosine.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace olrank {
namespace {

/// Sums behind a cosine.
struct Products {
  double ab = 0.0;
  double aa = 0.0;
  double bb = 0.0;

  std::optional<double> cosine() const {
    if (!(aa > 0.0 && bb > 0.0)) return std::nullopt;
    return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);  // beyond 1 only by rounding
  }
};

template <class A>
void add_products(std::span<const A> a, double mean_a, std::span<const float> b, double mean_b,
                  Products& sums) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] - mean_a;
    const double y = b[i] - mean_b;
    sums.ab += x * y;
    sums.aa += x * x;
    sums.bb += y * y;
  }
}

double mean_of(std::span<const float> values) {
  double sum = 0.0;
  for (const float value : values) sum += value;
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

bool is_linear(const ModelTensors& model) {
  return std::find(model.architecture.begin(), model.architecture.end(),
                   std::pair<std::string, std::string>("architecture", "linear")) !=
         model.architecture.end();
}

}  // namespace

std::optional<double> cosine_of(std::span<const float> a, std::span<const float> b) {
  assert(a.size() == b.size());
  Products sums;
  add_products(a, 0.0, b, 0.0, sums);
  return sums.cosine();
}

std::optional<double> centred_cosine(const Dataset& data, std::span<const float> a,
                                     std::span<const float> b) {
  assert(std::ssize(a) == data.docs() && a.size() == b.size());
  Products sums;
  for (std::int64_t query = 0; query < data.queries(); ++query) {
    const auto first = static_cast<std::size_t>(data.offset(query));
    const auto docs = static_cast<std::size_t>(data.docs_of(query));
    const auto of_a = a.subspan(first, docs);
    const auto of_b = b.subspan(first, docs);
    add_products(of_a, mean_of(of_a), of_b, mean_of(of_b), sums);
  }
  return sums.cosine();
}

std::optional<double> cosine_to_offline(const ModelTensors& model, const Dataset& eval_set,
                                        std::span<const float> eval_scores, const OfflineModel& offline) {
  if (!is_linear(model)) return centred_cosine(eval_set, eval_scores, offline.eval_scores);
  // The members' sum has the direction of their mean.
  std::vector<double> theta(offline.theta.size());
  for (const ModelTensors::Tensor& tensor : model.tensors) {
    assert(tensor.values.size() == theta.size());
    for (std::size_t k = 0; k < theta.size(); ++k) theta[k] += tensor.values[k];
  }
  Products sums;
  add_products(std::span<const double>(theta), 0.0, offline.theta, 0.0, sums);
  return sums.cosine();
}

}  // namespace olrank
