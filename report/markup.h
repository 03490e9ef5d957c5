#pragma once

#include <string>
#include <string_view>

namespace olrank {

/// Text for HTML and SVG, in content and quoted attributes: escapes markup, and cleans like clean_utf8().
std::string escape_html(std::string_view text);

/// Text for LaTeX in text mode; '?' for characters that its fonts may lack.
std::string escape_latex(std::string_view text);

/// A field of a CSV file, cleaned likewise.
std::string csv_text(std::string_view text);

/// Replaces invalid UTF-8 and control characters with U+FFFD.
std::string clean_utf8(std::string_view text);

/// Letters and digits, with a hyphen between their runs: for file names and labels. At most 60 characters.
std::string name_slug(std::string_view text);

/// Estimated pixel width of a line of sans-serif text, for a wide typeface so that others fit too.
double text_width(std::string_view text, double font_size);

/// The text, or as much of its start and end as fits around a '…'.
std::string shortened(std::string_view text, double font_size, double width);

}  // namespace olrank
