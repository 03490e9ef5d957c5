#pragma once

#include <string>
#include <string_view>

#include "core/error.h"

namespace olrank {

/// Flags as the options that they are here: "click_model" for "--click-model".
inline std::string without_flags(std::string_view message) {
  std::string text;
  bool in_flag = false;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message.substr(i, 2) == "--") {
      in_flag = true;
      ++i;
      continue;
    }
    in_flag = in_flag && (message[i] == '-' || (message[i] >= 'a' && message[i] <= 'z'));
    text += in_flag && message[i] == '-' ? '_' : message[i];
  }
  return text;
}

template <class Work>
auto with_option_names(const Work& work) {
  try {
    return work();
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(without_flags(error.what()));
  }
}

}  // namespace olrank
