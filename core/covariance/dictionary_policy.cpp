#include "core/covariance/dictionary_policy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random/rng_stream.h"

namespace olrank {

std::int64_t DictionaryPolicy::slack() const {
  return std::max(kRows, budget_ / 4);
}

bool DictionaryPolicy::restore_least_share(double share) {
  if (!(share >= kLeastShare && share <= kMostShare)) return false;
  least_share_ = share;
  return true;
}

double DictionaryPolicy::priority(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  return RngStream(make_key({.purpose = Purpose::kDictionary}), static_cast<std::uint32_t>(bits),
                   static_cast<std::uint32_t>(bits >> 32))
      .uniform();
}

// Cholesky's elimination, with the pairs that enter as its pivots.
Admission DictionaryPolicy::admit(std::int64_t members, std::span<const double> magnitudes,
                                  std::span<double> residual) const {
  const auto pairs = std::ssize(magnitudes);
  Admission admission;
  std::vector<double> columns;  // [entered × pairs]
  for (std::int64_t i = 0; i < pairs && members + std::ssize(admission.entered) < budget_; ++i) {
    const double left = residual[i * pairs + i];
    if (!is_new(left, magnitudes[i])) continue;
    const double pivot = std::sqrt(left);
    const auto first = std::ssize(columns);
    for (std::int64_t j = 0; j < pairs; ++j) columns.push_back(residual[i * pairs + j] / pivot);
    // Pairs that entered earlier have nothing left.
    for (const std::int64_t earlier : admission.entered) columns[first + earlier] = 0.0;
    columns[first + i] = pivot;
    const double* along = columns.data() + first;
    for (std::int64_t j = 0; j < pairs; ++j) {
      for (std::int64_t k = 0; k < pairs; ++k) residual[j * pairs + k] -= along[j] * along[k];
    }
    for (std::int64_t j = 0; j < pairs; ++j) residual[i * pairs + j] = residual[j * pairs + i] = 0.0;
    admission.entered.push_back(i);
  }
  const auto entered = std::ssize(admission.entered);
  admission.coordinates.resize(columns.size());
  for (std::int64_t i = 0; i < pairs; ++i) {
    for (std::int64_t e = 0; e < entered; ++e)
      admission.coordinates[i * entered + e] = columns[e * pairs + i];
  }
  return admission;
}

std::vector<std::int64_t> DictionaryPolicy::choose(std::span<const double> priorities) const {
  std::vector<std::int64_t> chosen(priorities.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  if (std::ssize(chosen) <= budget_) return chosen;
  // The older pair counts where priorities are equal.
  std::nth_element(chosen.begin(), chosen.begin() + budget_, chosen.end(),
                   [&](std::int64_t a, std::int64_t b) {
                     return priorities[a] != priorities[b] ? priorities[a] > priorities[b] : a < b;
                   });
  chosen.resize(budget_);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace olrank
