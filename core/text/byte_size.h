#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// "512 bytes", "1.5 MB", "17.2 GB", by powers of 1000.
std::string readable_bytes(double bytes);

/// Parses "8GB", "1.5 GiB", "500 MB", "1000000": a number and B, kB, MB, GB, TB (powers of 1000) or KiB,
/// MiB, GiB, TiB (powers of 1024), case-insensitive; bytes without a unit. Nothing for anything else.
std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace olrank
