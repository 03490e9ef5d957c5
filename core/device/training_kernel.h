#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"

namespace olrank {

/// How a device takes the J steps of a full-batch training: in one persistent kernel that keeps the
/// documents in shared memory, as a recorded graph of kernels, or persistently wherever that is possible.
enum class TrainingKernel { kAuto, kPersistent, kRecorded };

template <>
struct EnumNames<TrainingKernel> {
  static constexpr std::array values = {
      std::pair{TrainingKernel::kAuto, std::string_view("auto")},
      std::pair{TrainingKernel::kPersistent, std::string_view("persistent")},
      std::pair{TrainingKernel::kRecorded, std::string_view("recorded")}};
};

}  // namespace olrank
