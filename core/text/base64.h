#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// Bytes as text in the alphabet of RFC 4648, section 4, padded.
std::string base64_of(std::string_view bytes);
/// The bytes of such a text; nothing for any other.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace olrank
