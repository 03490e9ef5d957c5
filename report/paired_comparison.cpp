#include "report/paired_comparison.h"

#include <cmath>
#include <utility>

#include "core/random/rng_stream.h"
#include "core/statistics/holm.h"

namespace olrank {

PhiloxKey resampling_key(const std::string& measure) {
  return make_key(
      {.purpose = Purpose::kResampling, .click_model = name_hash(measure.data(), measure.size())});
}

bool PairedComparison::tested() const {
  return !std::isnan(test.t_p);
}

MeanInterval PairedComparison::difference_of(std::size_t one) const {
  MeanInterval difference = test.difference;
  if (one == b) difference.mean = -difference.mean;
  return difference;
}

double PairedComparison::deviation() const {
  return deviation_of(independent_values(differences));
}

PairedComparison compared(std::size_t a, std::size_t b, FoldedValues differences) {
  const PairedTest test = paired_test(differences);
  return {a, b, std::move(differences), test};
}

PairedComparison compared(std::size_t a, std::size_t b, FoldedValues differences,
                          const std::string& measure) {
  const PairedTest test = paired_test(differences, resampling_key(measure));
  return {a, b, std::move(differences), test};
}

void correct(std::span<PairedComparison* const> family) {
  std::vector<double> t_p;
  std::vector<double> flip_p;
  for (const PairedComparison* comparison : family) {
    t_p.push_back(comparison->test.t_p);
    flip_p.push_back(comparison->test.flip_p);
  }
  const std::vector<double> t_holm = holm_adjusted(t_p);
  const std::vector<double> flip_holm = holm_adjusted(flip_p);
  for (std::size_t i = 0; i < family.size(); ++i) {
    family[i]->t_holm = t_holm[i];
    family[i]->flip_holm = flip_holm[i];
  }
}

const PairedComparison* comparison_of(std::span<const PairedComparison> comparisons, std::size_t one,
                                      std::size_t other) {
  for (const PairedComparison& comparison : comparisons) {
    if ((comparison.a == one && comparison.b == other) || (comparison.a == other && comparison.b == one))
      return &comparison;
  }
  return nullptr;
}

std::size_t best_of(std::span<const double> means, bool larger_is_better) {
  std::size_t best = means.size();
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (std::isnan(means[i])) continue;
    if (best == means.size() || (larger_is_better ? means[i] > means[best] : means[i] < means[best]))
      best = i;
  }
  return best;
}

}  // namespace olrank
