#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace olrank {

/// Colours of a drawing, for light or dark ground.
enum class Theme { kLight, kDark };

inline constexpr std::size_t kColours = 8;
inline constexpr std::size_t kDashes = 7;
inline constexpr std::size_t kParts = 12;

/// The typeface of drawings: of a page's and of a file's, which names only what every program knows.
inline constexpr std::string_view kPageFont = "system-ui,sans-serif";
inline constexpr std::string_view kFileFont = "sans-serif";

/// CSS with every drawing's classes and its light and dark colours, which are set on `scope`, such as
/// ":root".
std::string drawing_style(std::string_view scope);

/// The elements with their classes replaced by presentation attributes with literal colours, because many
/// programs that read SVG know neither style sheets nor variables. Throws std::logic_error at a class
/// without a style.
std::string literal_styles(std::string_view elements, Theme theme);

/// The colour `name` (ink, soft, grid, ground, c0, …) of the theme, as "#rrggbb".
std::string_view theme_colour(std::string_view name, Theme theme);

/// Whether a part's colour needs light text.
bool is_dark_part(std::size_t part);

}  // namespace olrank
