#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "report/figures.h"
#include "report/report.h"

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

/// Names of the formats of figures.
inline constexpr const char* kSvgFormat = "svg";
inline constexpr const char* kPdfFormat = "pdf";

/// A figure and the name of its files, "perfect-ndcg".
struct PlacedFigure {
  std::string name;
  ReportFigure figure;
};

/// Each figure of each user, and of studies.
std::vector<PlacedFigure> placed_figures(const Report& report);

/// Writes figures into a folder.
class FigureWriter {
 public:
  /// Throws InvalidArgument at an unknown format, and IoError if this machine cannot make one of them.
  explicit FigureWriter(const std::vector<std::string>& formats);

  /// Writes the placed figures with their numbers as CSV: NAME.svg for light ground,
  /// NAME-dark.svg, NAME.pdf, NAME.csv. Returns the number of figures.
  std::size_t write(const Report& report, const std::filesystem::path& folder) const;

 private:
  bool svg_ = false;
  std::vector<PdfConverter> pdf_;  // one if PDF is written
};

}  // namespace olrank
