#pragma once

#include <functional>
#include <string_view>

#include "core/data/dataset.h"

namespace olrank {

struct LetorFormat {
  /// Leave zeros out, but for one that keeps the number of features. Negative zeros stay.
  bool sparse = false;
};

/// Writes LETOR lines to `sink`, piece by piece. Values in their shortest decimal form, which reads back as
/// the same bits; read again, the text gives the same data set.
void write_letor(const Dataset& data, const LetorFormat& format,
                 const std::function<void(std::string_view)>& sink);

}  // namespace olrank
