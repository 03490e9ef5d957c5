#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// How offline metrics count a query without a relevant document.
enum class EmptyQueries { kZero, kOne, kSkip };

template <>
struct EnumNames<EmptyQueries> {
  static constexpr std::array values = {std::pair{EmptyQueries::kZero, std::string_view("zero")},
                                        std::pair{EmptyQueries::kOne, std::string_view("one")},
                                        std::pair{EmptyQueries::kSkip, std::string_view("skip")}};
};

}  // namespace olrank
