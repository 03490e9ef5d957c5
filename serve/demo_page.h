#pragma once

#include "serve/status_page.h"

namespace olrank {

struct DemoCatalogue;

/// How often the game of a taste may start with rankers that have learned nothing.
inline constexpr int kDemoStarts = 4;

/// The page of `olrank demo`. It asks the service with number 2 × T for the exploring lists of taste T, and
/// the next one for the lists of the best guess; the two after those of all tastes learn from a person's
/// own clicks. As many services follow for each further start. After a change, the test of the page says
/// the new hashes.
ServicePage demo_page(const DemoCatalogue& catalogue, std::uint64_t seed);

}  // namespace olrank
