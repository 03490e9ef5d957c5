#pragma once

#include <string_view>

namespace olrank {

/// What this build is. The revision is git's, with "-dirty" when files differed from it, or "unknown".
std::string_view version();
std::string_view revision();
std::string_view compiler();

}  // namespace olrank
