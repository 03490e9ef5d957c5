#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

// Times as milliseconds since 1970, UTC.

/// "2026-01-31T23:59:59.123Z"
std::string utc_text(std::int64_t milliseconds);

/// Reads a date and time as RFC 3339 writes them: "2026-01-31T23:59:59.123+01:00". A blank may stand for
/// the T, seconds may lack a fraction, and without an offset the time is UTC. Nothing for any other text.
std::optional<std::int64_t> utc_milliseconds(std::string_view text);

}  // namespace olrank
