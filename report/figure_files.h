#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "report/figures.h"
#include "report/report.h"

namespace olrank {

inline constexpr const char* kSvgFormat = "svg";
inline constexpr const char* kPdfFormat = "pdf";

/// A figure and the name of its files, "perfect-ndcg".
struct PlacedFigure {
  std::string name;
  ReportFigure figure;
};

/// Each figure of each user, and of studies.
std::vector<PlacedFigure> placed_figures(const Report& report);

class FigureWriter {
 public:
  /// Throws InvalidArgument at an unknown format, and IoError if this machine cannot make one of them.
  explicit FigureWriter(const std::vector<std::string>& formats);

  /// Writes the placed figures with their numbers as CSV: NAME.svg for light ground,
  /// NAME-dark.svg, NAME.pdf, NAME.csv. Returns the number of figures.
  std::size_t write(const Report& report, const std::filesystem::path& folder) const;

 private:
  bool svg_ = false;
  std::vector<std::string>
      pdf_command_;  // makes PDF of SVG on its standard input; empty if none is written
};

}  // namespace olrank
