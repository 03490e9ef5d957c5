#pragma once

#include <string>

namespace olrank {

/// The page's style sheet, with that of its pictures.
std::string page_style();

}  // namespace olrank
