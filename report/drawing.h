#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/drawing_style.h"

namespace olrank {

/// A finished drawing: the content of its <svg> element, with a text alternative.
struct Drawing {
  double width = 0.0;
  double height = 0.0;
  std::string body;
  std::string title;
  std::string description;  // what the drawing shows, in words
};

/// For a page with drawing_style(); `id` must be unique in it.
std::string inline_svg(const Drawing& drawing, const std::string& id);

/// As a self-contained file that any program can draw.
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
/// Parts of bars have their own colours, equal in light and dark mode, each with a contrasting text colour.
std::string part_class(std::size_t part);
std::string on_part_class(std::size_t part);
/// A marker in the style's shape and colour; hollow ones have an outline only.
std::string svg_marker(double x, double y, double radius, std::size_t style, std::string_view tooltip = {},
                       bool hollow = false);
/// The style's line and marker, for a legend.
std::string style_key(std::size_t style);

}  // namespace olrank
