#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// How the products of training are computed on a device: in float32, or on tensor cores, which round
/// factors to TF32 (10 mantissa bits) and accumulate in float32.
enum class Precision { kFloat32, kTf32 };

template <>
struct EnumNames<Precision> {
  static constexpr std::array values = {std::pair{Precision::kFloat32, std::string_view("float32")},
                                        std::pair{Precision::kTf32, std::string_view("tf32")}};
};

}  // namespace olrank
