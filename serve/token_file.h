#pragma once

#include <filesystem>
#include <string>

namespace olrank {

/// The bearer token in a file: one line. Throws InvalidArgument for an empty or longer file, and for
/// control characters, which no request header can hold.
std::string read_token(const std::filesystem::path& file);

}  // namespace olrank
