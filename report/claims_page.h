#pragma once

#include <string>
#include <vector>

#include "report/drawing.h"

namespace olrank {

/// One measured figure next to what a theory says of it; all plain text.
struct PageClaim {
  std::string subject;
  std::string quantity;
  std::string measured;
  std::string theory;
  std::string verdict;
};

struct PageFigure {
  Drawing drawing;
  std::string caption;
};

struct ClaimsSection {
  std::string title;
  std::string sentence;
  std::vector<PageClaim> claims;
  std::vector<PageFigure> figures;
};

/// A study of claims: tables and figures by section.
struct ClaimsPage {
  std::string program;  // the command that made it
  std::string title;
  std::string sentence;  // what came out
  std::vector<ClaimsSection> sections;
  std::string settings;
};

/// As one self-contained HTML page, in the style of reports.
std::string claims_page(const ClaimsPage& page);

}  // namespace olrank
