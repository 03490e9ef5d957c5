#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// A name of earlier versions, and the sentence that refuses it.
struct DroppedName {
  std::string_view name;  // as users write it: a flag with its dashes
  std::string_view sentence;
};

constexpr std::array kDroppedNames = {
    DroppedName{"--share-members",
                "--share-members is gone, as an ensemble trains in one process: use --shard I/N, or "
                "olrank.run(executor=...) in Python, to spread trials over processes and machines."},
    DroppedName{
        "last-layer",
        "covariance 'last-layer' is gone: take \"diagonal\", or \"inducing\" where directions matter."},
    DroppedName{
        "unit-blocks",
        "covariance 'unit-blocks' is gone: take \"diagonal\", or \"inducing\" where directions matter."},
};

/// The sentence that refuses a dropped name; none for any other name.
inline std::optional<std::string> dropped_sentence(std::string_view name) {
  const auto* const found = std::find_if(kDroppedNames.begin(), kDroppedNames.end(),
                                         [&](const DroppedName& dropped) { return dropped.name == name; });
  if (found == kDroppedNames.end()) return std::nullopt;
  return std::string(found->sentence);
}

}  // namespace olrank
