#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/statistics/t_tests.h"

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

/// Short, for axes and texts: "2,500", "0.35", "−1.2e+07".
std::string short_number(double value);

/// Writes so many digits after the point: "12,345.6", "−0.0042"; "–" if it is not finite.
std::string fixed_number(double value, int digits);

/// "0.4914 ± 0.0081"; without the interval if there is none.
std::string estimate_text(const MeanInterval& estimate, int digits, bool with_sign = false);

/// Writes an estimate for a terminal or LaTeX: a hyphen as minus, no commas between thousands, a sign if
/// wanted, and `between` the mean and its interval.
std::string plain_estimate(const MeanInterval& estimate, int digits, bool with_sign = true,
                           std::string_view between = " ± ");

/// The clause says what the ± of a table means: `units` are "the trials of 5 folds" or "3 seeds".
std::string meaning_of_intervals(const std::string& units);

/// Ascending numbers with runs joined: "3 to 5, 8" if " to " is `between` the ends of a run.
std::string runs_text(const std::vector<std::int64_t>& numbers, std::string_view between);

/// The number with a true minus sign in place of the hyphen that formatting gives.
std::string with_minus(std::string number);

}  // namespace olrank
