#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// The columns that UTF-8 text takes on a terminal, if every character is one column wide.
std::int64_t columns_of(std::string_view text);

/// The text padded with blanks to `columns`, on the right or on the left.
std::string padded_right(std::string_view text, std::int64_t columns);
std::string padded_left(std::string_view text, std::int64_t columns);

/// The text in at most `columns` columns: of a longer one, `…` replaces the middle.
std::string shortened(std::string_view text, std::int64_t columns);

/// All texts in at most `columns` columns each, so that different ones stay different where that is
/// possible: the part that is cut out moves from the middle to the right.
std::vector<std::string> shortened_apart(const std::vector<std::string>& texts, std::int64_t columns);

/// The text in lines of at most `columns`, broken at blanks, or after `|`, `,` or `/` within words that are
/// longer than a line; the rest of a broken line begins with `indent` blanks. Line breaks in the text stay.
/// Without a limit (0 columns), the text as it is.
std::string wrapped(std::string_view text, std::int64_t columns, std::int64_t indent = 0);

}  // namespace olrank
