#include "core/covariance/block_probes.h"

#include <cmath>

#include "core/random/rng_stream.h"

namespace olrank {

std::vector<double> block_directions(std::span<const std::int64_t> sizes) {
  std::int64_t parameters = 0;
  for (const std::int64_t size : sizes) parameters += size;
  std::vector<double> all(kBlockProbes * parameters);
  std::span<double> rest = all;
  for (std::uint32_t probe = 0; probe < kBlockProbes; ++probe) {
    for (std::size_t block = 0; block < sizes.size(); ++block) {
      RngStream draws(make_key({.purpose = Purpose::kProbe}), static_cast<std::uint32_t>(block), probe);
      draws.unit_vector(rest.first(sizes[block]));
      rest = rest.subspan(sizes[block]);
    }
  }
  return all;
}

double worst_of_energies(std::span<const double> found, std::span<const double> expected) {
  double worst = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(found[i] - expected[i]) / expected[i];
    if (std::isnan(error)) return error;
    if (error > worst) worst = error;
  }
  return worst;
}

}  // namespace olrank
