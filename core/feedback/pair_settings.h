#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Which examined documents form preference pairs.
enum class PairRule { kAdjacent, kMatched, kExpected, kAll };

struct PairSettings {
  PairRule pairs = PairRule::kAdjacent;
  std::vector<double> debias;  // P(examined) of the ranks from the first; empty: clicks count as they are
  std::int64_t examined_after = 1;  // l: unclicked documents behind the last click

  static const Schema& schema();
};

template <>
struct EnumNames<PairRule> {
  static constexpr std::array values = {std::pair{PairRule::kAdjacent, std::string_view("adjacent")},
                                        std::pair{PairRule::kMatched, std::string_view("matched")},
                                        std::pair{PairRule::kExpected, std::string_view("expected")},
                                        std::pair{PairRule::kAll, std::string_view("all")}};
};

}  // namespace olrank
