#pragma once

#include <string_view>

namespace olrank {

/// Version of this build. The revision is git's, with "-dirty" for modified files, or "unknown".
std::string_view version();
std::string_view revision();
std::string_view compiler();

}  // namespace olrank
