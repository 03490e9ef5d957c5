#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// Turns SVG into PDF with a program of this machine: rsvg-convert, or cairosvg where that is missing.
class PdfConverter {
 public:
  /// Throws IoError if there is no such program, and says what to install.
  PdfConverter();

  /// Throws IoError if the program fails.
  std::string convert(std::string_view svg) const;

  const std::string& program() const { return command_.front(); }

 private:
  std::vector<std::string> command_;  // reads SVG from standard input and writes PDF to standard output
};

}  // namespace olrank
