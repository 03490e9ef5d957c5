#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// How a device trains the members of an ensemble side by side: each in its own stream, all as one batch,
/// or whichever it measures to be faster.
enum class MemberSchedule { kAuto, kStreams, kBatched };

template <>
struct EnumNames<MemberSchedule> {
  static constexpr std::array values = {std::pair{MemberSchedule::kAuto, std::string_view("auto")},
                                        std::pair{MemberSchedule::kStreams, std::string_view("streams")},
                                        std::pair{MemberSchedule::kBatched, std::string_view("batched")}};
};

}  // namespace olrank
