#include "core/runtime/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace olrank {

int terminal_columns(int descriptor) {
  constexpr int kUsual = 80;
  constexpr int kMost = 100'000;
  const bool terminal = isatty(descriptor) != 0;
  winsize size{};
  if (terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* given = std::getenv("COLUMNS"); given != nullptr) {
    const std::string_view text(given);
    int columns = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc{} && rest == text.data() + text.size() && columns > 0 && columns <= kMost)
      return columns;
  }
  return terminal ? kUsual : 0;
}

}  // namespace olrank
