#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// Edits (insert, delete, replace, swap neighbours) that turn one word into the other; upper and lower
/// case count as equal, and so do '-' and '_'.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate with the fewest edits, the first on ties; empty without candidates. Missing leading words
/// count as one edit (--eval-every for --protocol-eval-every), and so does a missing end ("exp" for
/// "exponential").
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// The nearest candidate if it may be meant: at most one edit in three letters of the name, dashes before
/// it left out. Empty otherwise: a name of one or two letters has a candidate only in other case.
std::string near_name(std::string_view name, std::span<const std::string> candidates);

/// "Did you mean 'beta'?", or "No known name is close to it."; ends a message about an unknown name.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "must be a, b or c, not 'x'. Did you mean 'b'?", without the question if none is near; what follows the
/// setting or flag in a message.
std::string must_be_one_of(std::string_view text, std::span<const std::string> choices);

/// "a, b and c".
std::string joined(std::span<const std::string> names, std::string_view last_separator = " and ");

}  // namespace olrank
