#pragma once

#include <string>
#include <string_view>

namespace olrank {

/// The page at `/`. It holds no data: its script asks /v1/overview for them, with the token that a person
/// types in where the service has one.
const std::string& status_page();

/// Its Content-Security-Policy: the page's own style and script, by their SHA-256, and requests to the
/// service. After a change, the test of the page says the new hash.
extern const std::string_view kStatusPagePolicy;

}  // namespace olrank
