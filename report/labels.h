#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace olrank {

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
