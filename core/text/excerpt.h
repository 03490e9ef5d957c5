#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace olrank {

// Foreign texts as a message can show them: what a terminal would act on is written as \x1b.

std::string printable(std::string_view text);

/// printable(), and of a text longer than `most` bytes the beginning, an ellipsis and the last `tail`
/// bytes.
std::string excerpt(std::string_view text, std::size_t most = 40, std::size_t tail = 0);

}  // namespace olrank
