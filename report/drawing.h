#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Labels of points and lines.

/// Positions for labels as near as possible to `wanted`, at least `gap` apart and within [low, high] if
/// they fit. Labels that would touch move apart symmetrically, by as little as possible.
std::vector<double> spread_labels(const std::vector<double>& wanted, double gap, double low, double high);

struct Box {
  double left = 0.0;
  double top = 0.0;
  double right = 0.0;
  double bottom = 0.0;

  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool within(const Box& outer) const {
    return left >= outer.left && right <= outer.right && top >= outer.top && bottom <= outer.bottom;
  }
};

struct LabelledPoint {
  double x = 0.0;
  double y = 0.0;
  double width = 0.0;  // of its label
  double height = 0.0;
  double low = 0.0;  // of its vertical line
  double high = 0.0;
};

/// A label's place, and whether it is far enough from its point to need a leader line.
struct LabelPlace {
  Box box;
  bool needs_leader = false;

  /// End of the leader line: the label's nearest point.
  double lead_x(const LabelledPoint& point) const { return std::clamp(point.x, box.left, box.right); }
  double lead_y(const LabelledPoint& point) const { return std::clamp(point.y, box.top, box.bottom); }
};

/// A place for each point's label: at `distance` from the point or as near as there is room, else none.
/// Labels do not overlap each other, points or vertical lines, and leader lines cross no other point or
/// label. Near places are assigned first; at equal distance, earlier points come first.
std::vector<std::optional<LabelPlace>> place_labels(const std::vector<LabelledPoint>& points,
                                                    const Box& frame, double distance);

/// Each name, or as much of it as fits into `width` pixels. Shortened labels of different names differ:
/// where both ends are alike, the label is a window around the part that tells the names apart.
std::vector<std::string> distinct_labels(const std::vector<std::string>& names, double font_size,
                                         double width);

/// An SVG text element with a shortened name; the whole name is its tooltip.
std::string svg_label(double x, double y, const std::string& label, const std::string& name);

}  // namespace olrank
