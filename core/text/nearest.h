#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// Edits (insert, delete, replace, swap neighbours) that turn one word into the other; upper and lower
/// case count as equal, and so do '-' and '_'.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate with the fewest edits, the first of equals; empty when there are no candidates. First
/// words left out count as one edit, --eval-every is next to --protocol-eval-every, and so does an end that
/// was not written, "exp" of "exponential".
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// "a, b and c"; used to list what was looked for.
std::string joined(std::span<const std::string> names, std::string_view last_separator = " and ");

}  // namespace olrank
