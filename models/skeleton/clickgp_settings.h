#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Which click models run side by side.
enum class ClickTerms { kLinear, kAdditive, kProducts };

/// The settings of kind clickgp: none of them is about the data.
struct ClickGpSettings {
  ClickTerms terms = ClickTerms::kProducts;
  double memory_limit = 0.0;  // MB
  double forget = 0.0;        // lists

  static const Schema& schema();
};

template <>
struct EnumNames<ClickTerms> {
  static constexpr std::array values = {std::pair{ClickTerms::kLinear, std::string_view("linear")},
                                        std::pair{ClickTerms::kAdditive, std::string_view("additive")},
                                        std::pair{ClickTerms::kProducts, std::string_view("products")}};
};

}  // namespace olrank
