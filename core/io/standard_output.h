#pragma once

#include <string>
#include <string_view>

namespace olrank {

/// Writes results to standard output; throws IoError if that fails, such as on a full disk.
void write_output(std::string_view text);

/// Throws IoError if anything written so far could not be, as a full disk shows only then. Puts a table
/// above the lines that follow on stderr.
void flush_output();

/// The sentence for a failed write; `error_number` is errno's value at the failure.
std::string output_error(int error_number);

}  // namespace olrank
