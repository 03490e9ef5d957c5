#pragma once

#include "serve/service_page.h"

namespace olrank {

struct DemoCatalogue;

/// The page of `olrank demo`. It asks the service with number 2 × T for the exploring lists of taste T, and
/// the next one for the lists of the best guess; the last two services learn from a person's own clicks.
/// After a change, the test of the page says the new hashes.
ServicePage demo_page(const DemoCatalogue& catalogue, std::uint64_t seed);

}  // namespace olrank
