#include "models/clickgp/query_site.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace olrank {

void solve_site(const Departures& departures, const SiteEvidence& evidence, int steps, double least_step,
                QuerySite& site) {
  const auto& [examined, clicks, model] = evidence;
  const std::size_t docs = examined.size();
  assert(model.size() == docs && site.departure.size() == docs);
  const double s2 = departures.document;
  const double t2 = departures.query;
  constexpr double kLongest = 2.0;
  constexpr double kLeastWeight = 1e-6;

  std::vector<double> fitted(docs);
  for (std::size_t doc = 0; doc < docs; ++doc)
    fitted[doc] = model[doc] + site.departure[doc] + site.query_departure;
  // Each step writes ε here first and then makes v of it.
  const std::span<double> slope = site.evidence;
  for (int step = 0; step < steps; ++step) {
    site.curvature_sum = 0.0;
    double slopes = 0.0;
    for (std::size_t doc = 0; doc < docs; ++doc) {
      const double p = click_probability(fitted[doc]);
      const double weight = std::max(examined[doc] * p * (1.0 - p), kLeastWeight * examined[doc]);
      const double narrowed = 1.0 + s2 * weight;
      site.curvature[doc] = weight / narrowed;
      slope[doc] = (weight * (fitted[doc] - model[doc]) + clicks[doc] - examined[doc] * p) / narrowed;
      site.curvature_sum += site.curvature[doc];
      slopes += slope[doc];
    }
    site.coupling = t2 / (1.0 + t2 * site.curvature_sum);
    site.slope_sum = 0.0;
    for (std::size_t doc = 0; doc < docs; ++doc) {
      slope[doc] -= site.coupling * site.curvature[doc] * slopes;
      site.slope_sum += slope[doc];
    }
    double longest = 0.0;
    for (std::size_t doc = 0; doc < docs; ++doc) {
      const double wanted = model[doc] + s2 * slope[doc] + t2 * site.slope_sum - fitted[doc];
      const double change = std::clamp(wanted, -kLongest, kLongest);
      fitted[doc] += change;
      longest = std::max(longest, std::abs(change));
    }
    if (longest < least_step) break;
  }
  double pull = 0.0;  // h·m
  for (std::size_t doc = 0; doc < docs; ++doc) pull += site.curvature[doc] * model[doc];
  for (std::size_t doc = 0; doc < docs; ++doc) {
    const double v = slope[doc];
    site.departure[doc] = s2 * v;
    site.evidence[doc] = v + site.curvature[doc] * (model[doc] - site.coupling * pull);
  }
  site.query_departure = t2 * site.slope_sum;
}

}  // namespace olrank
