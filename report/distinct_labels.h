#pragma once

#include <string>
#include <vector>

namespace olrank {

/// Each name, or as much of it as fits into `width` pixels. Shortened labels of different names differ:
/// where both ends are alike, the label is a window around the part that tells the names apart.
std::vector<std::string> distinct_labels(const std::vector<std::string>& names, double font_size,
                                         double width);

/// An SVG text element with a shortened name; the whole name is its tooltip.
std::string svg_label(double x, double y, const std::string& label, const std::string& name);

}  // namespace olrank
