#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace olrank {

/// The processor's name, as the system gives it; "unknown" where it gives none.
std::string cpu_model();

/// The physical memory that this process has, in bytes; 0 where the system does not say.
std::int64_t resident_bytes();

/// Now, as "2026-01-31T23:59:59Z".
std::string utc_now();
/// The seconds since 1970 of such a time; nothing for any other text.
std::optional<std::int64_t> utc_seconds(const std::string& text);

}  // namespace olrank
