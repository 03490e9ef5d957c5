#pragma once

#include <string>
#include <string_view>

namespace olrank {

/// Text for HTML and SVG, in content and quoted attributes: markup escaped, bytes that are no UTF-8 and
/// control characters replaced.
std::string escape_html(std::string_view text);

/// Text for LaTeX's text mode.
std::string escape_latex(std::string_view text);

/// The text with whatever is no UTF-8, or a control character, replaced by U+FFFD.
std::string clean_utf8(std::string_view text);

/// Width in pixels of a line of sans-serif text, estimated by a wide typeface so that it fits in others.
double text_width(std::string_view text, double font_size);

/// The text, or as much of its beginning and end as fits with '…' between.
std::string shortened(std::string_view text, double font_size, double width);

}  // namespace olrank
