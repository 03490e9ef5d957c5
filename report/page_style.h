#pragma once

#include <string>

namespace olrank {

/// The page's style sheet, including drawing_style().
std::string page_style();

}  // namespace olrank
