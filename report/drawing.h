#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A finished picture: what stands between <svg> and </svg>, with its text alternative.
struct Drawing {
  double width = 0.0;
  double height = 0.0;
  std::string body;
  std::string title;
  std::string description;  // says in words what the picture shows
};

/// As part of a page; `id` is unique there. Colours come from the page's style.
std::string inline_svg(const Drawing& drawing, const std::string& id);

/// As a file of its own, with its style.
std::string standalone_svg(const Drawing& drawing);

/// Colours, light and dark, and classes of every picture. They hold below `scope`, such as ":root".
std::string drawing_style(std::string_view scope);

// Pieces of a body. Coordinates are pixels, printed to a tenth.

enum class Anchor { kStart, kMiddle, kEnd };
std::string svg_text(double x, double y, std::string_view text, std::string_view kind,
                     Anchor anchor = Anchor::kStart);
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view kind);

/// Styles of rankers are numbered: colour, dashes and marker, each known without the other two.
inline constexpr std::size_t kColours = 8;
std::string line_class(std::size_t style);
std::string fill_class(std::size_t style);
/// Parts of bars have colours of their own, the same in light and dark, and text that stands out on them.
std::string part_class(std::size_t part);
std::string on_part_class(std::size_t part);
/// A marker of the style's shape; `told` is what a pointer on it says.
std::string svg_marker(double x, double y, double radius, std::size_t style, std::string_view told = {});
/// Line and marker, as a key before a name.
std::string style_key(std::size_t style);

}  // namespace olrank
