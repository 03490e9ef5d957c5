#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// A data set keeps its features as one of these types. Every computation gets them as float32.
enum class FeatureType { kFloat32, kFloat16, kUint8 };

template <>
struct EnumNames<FeatureType> {
  static constexpr std::array values = {std::pair{FeatureType::kFloat32, std::string_view("float32")},
                                        std::pair{FeatureType::kFloat16, std::string_view("float16")},
                                        std::pair{FeatureType::kUint8, std::string_view("uint8")}};
};

}  // namespace olrank
