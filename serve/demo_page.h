#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/status_page.h"

namespace olrank {

/// The page of `olrank demo` shows these: queries with documents, and how each of the simulated people
/// grades these, from 0 to 4.
struct DemoCatalogue {
  nlohmann::json json;
  std::int64_t features = 0;
  std::int64_t tastes = 0;
};

/// Generated products of three categories, and three people.
DemoCatalogue product_catalogue(std::uint64_t seed);

/// How often the game of a taste may start with rankers that have learned nothing.
inline constexpr int kDemoStarts = 4;

/// The page of `olrank demo`. It asks the service with number 2 × T for the exploring lists of taste T, and
/// the next one for the lists of the best guess; the two after those of all tastes learn from a person's
/// own clicks. As many services follow for each further start. After a change, the test of the page says
/// the new hashes.
ServicePage demo_page(const DemoCatalogue& catalogue, std::uint64_t seed);

}  // namespace olrank
