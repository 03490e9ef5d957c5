#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace olrank {

/// Colours of a drawing, for light or dark ground.
enum class Theme { kLight, kDark };

inline constexpr std::size_t kColours = 8;
inline constexpr std::size_t kDashes = 7;

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

/// A finished drawing: the content of its <svg> element, with a text alternative.
struct Drawing {
  double width = 0.0;
  double height = 0.0;
  std::string body;
  std::string title;
  std::string description;  // what the drawing shows, in words
};

/// Draws for a page with drawing_style(); `id` must be unique in it.
std::string inline_svg(const Drawing& drawing, const std::string& id);

/// Makes a self-contained file that any program can draw.
std::string standalone_svg(const Drawing& drawing, Theme theme);

// Elements of a body. Coordinates are in pixels, printed to a tenth.

enum class Anchor { kStart, kMiddle, kEnd };
std::string svg_text(double x, double y, std::string_view text, std::string_view kind,
                     Anchor anchor = Anchor::kStart);
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view kind);

/// A ranker's style number determines its colour, dash pattern and marker, each readable without the
/// others.
std::string line_class(std::size_t style);
std::string fill_class(std::size_t style);
/// A marker in the style's shape and colour; hollow ones have an outline only.
std::string svg_marker(double x, double y, double radius, std::size_t style, std::string_view tooltip = {},
                       bool hollow = false);
/// The style's line and marker, for a legend.
std::string style_key(std::size_t style);

}  // namespace olrank
