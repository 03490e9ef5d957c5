#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace olrank {

/// How a result is written: as JSON, or as text.
struct OutputForm {
  bool json = false;
  std::int64_t columns = 0;  // that a table of the text may take; 0 is no limit
};

/// Receives the text that a piece of work writes, in order.
using TextSink = std::function<void(std::string_view)>;

}  // namespace olrank
