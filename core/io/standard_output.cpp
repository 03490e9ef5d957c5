#include "core/io/standard_output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "core/error.h"

namespace olrank {

std::string output_error(int error_number) {
  return fmt::format("Cannot write to standard output: {}.", std::generic_category().message(error_number));
}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw IoError(output_error(errno));
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw IoError(output_error(errno));
  if (std::ferror(stdout) != 0) throw IoError(output_error(EIO));
}

}  // namespace olrank
