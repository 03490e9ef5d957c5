#pragma once

#include <cstdint>

namespace olrank {

/// How a result is written: as JSON, or as text.
struct OutputForm {
  bool json = false;
  std::int64_t columns = 0;  // that a table of the text may take; 0 is no limit
};

}  // namespace olrank
