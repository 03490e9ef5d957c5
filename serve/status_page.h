#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace olrank {

/// The page at `/`. It holds no data: its script asks /v1/overview for them, with the token that a person
/// types in where the service has one.
const std::string& status_page();

/// Its Content-Security-Policy: the page's own style and script, by their SHA-256, and requests to the
/// service. After a change, the test of the page says the new hash.
extern const std::string_view kStatusPagePolicy;

/// A browser gets this at `/`.
struct ServicePage {
  std::string html = status_page();
  std::string_view policy = kStatusPagePolicy;  // Content-Security-Policy
};

/// A service's page from its first line to where its body begins, with the style that all pages share and
/// the rules of this one.
std::string page_head(std::string_view title, std::string_view style);

/// The script that all pages share and that of this one, to the page's end. Text from outside reaches a
/// page as text nodes only, by the shared make(). Attributes named style would need a weaker policy.
std::string page_script(std::string_view script);

/// The products of `olrank demo` have so many features, so many simulated people grade them, and the game
/// of a taste may start so often with rankers that have learned nothing.
inline constexpr int kDemoFeatures = 6;
inline constexpr int kDemoTastes = 3;
inline constexpr int kDemoStarts = 4;

/// The page of `olrank demo`. It asks the service with number 2 × T for the exploring lists of taste T, and
/// the next one for the lists of the best guess; the two after those of all tastes learn from a person's
/// own clicks. As many services follow for each further start. After a change, the test of the page says
/// the new hashes.
ServicePage demo_page(std::uint64_t seed);

}  // namespace olrank
