#pragma once

#include <functional>
#include <string_view>

#include "core/data/dataset.h"

namespace olrank {

struct LetorFormat {
  /// Omit zeros, except one that preserves the number of features. Negative zeros are kept.
  bool sparse = false;
};

/// Writes LETOR lines to `sink`, piece by piece. Values have their shortest exact decimal form, so reading
/// the text gives the same data set.
void write_letor(const Dataset& data, const LetorFormat& format,
                 const std::function<void(std::string_view)>& sink);

}  // namespace olrank
