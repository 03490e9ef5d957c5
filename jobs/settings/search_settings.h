#pragma once

#include <cstdint>

#include "core/settings/schema.h"

namespace olrank {

/// How `olrank tune` takes points from a [sweep].
struct SearchSettings {
  std::int64_t draws = 0;  // 0: every combination
  std::int64_t seed = 1;

  bool is_random() const { return draws > 0; }

  static const Schema& schema();
};

}  // namespace olrank
