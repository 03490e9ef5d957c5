#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace olrank {

/// A setting that a version removed.
struct DroppedName {
  std::string_view name;
  std::string_view kept;      // the value that holds now, as TOML: files of earlier versions may name it
  std::string_view sentence;  // refuses every other value
};

inline constexpr std::array kDroppedNames = {
    DroppedName{"training_blocks", "0",
                "The setting training_blocks has gone, as the training kernel takes the whole GPU: remove "
                "it."},
    DroppedName{
        "member_schedule", "\"auto\"",
        "The setting member_schedule has gone, as a GPU trains members in one kernel or in a stream "
        "each: remove it."},
    DroppedName{"precision", "\"float32\"",
                "The setting precision has gone, as a GPU trains in float32: remove it."},
};

/// Null for a name that no version removed.
inline const DroppedName* dropped_name(std::string_view name) {
  const auto* found = std::find_if(kDroppedNames.begin(), kDroppedNames.end(),
                                   [name](const DroppedName& one) { return one.name == name; });
  return found == kDroppedNames.end() ? nullptr : found;
}

}  // namespace olrank
