#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// How the products of training are computed on a device: in float32, or from factors rounded to TF32 (10
/// bits behind the point) and added in float32, as tensor cores do.
enum class Precision { kFloat32, kTf32 };

template <>
struct EnumNames<Precision> {
  static constexpr std::array values = {std::pair{Precision::kFloat32, std::string_view("float32")},
                                        std::pair{Precision::kTf32, std::string_view("tf32")}};
};

}  // namespace olrank
