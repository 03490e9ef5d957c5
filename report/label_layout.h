#pragma once

#include <algorithm>
#include <optional>
#include <vector>

namespace olrank {

/// Heights for labels that want to stand at `wanted`, at least `gap` apart and within [low, high] as far as
/// that holds them all: labels that would touch move apart together, none further than it has to.
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

/// Where a label stands, and whether a line has to lead to it from its point, as it is not beside that.
struct LabelPlace {
  Box box;
  bool is_led = false;

  /// Where such a line ends: the nearest place of the label.
  double lead_x(const LabelledPoint& point) const { return std::clamp(point.x, box.left, box.right); }
  double lead_y(const LabelledPoint& point) const { return std::clamp(point.y, box.top, box.bottom); }
};

/// A place for each point's label: beside the point, at `distance`, or as near as there is room; none where
/// there is none. Labels meet neither each other nor points nor their vertical lines, and lines to them
/// meet no other point or label. The nearest places are given first, of these to earlier points.
std::vector<std::optional<LabelPlace>> place_labels(const std::vector<LabelledPoint>& points,
                                                    const Box& frame, double distance);

}  // namespace olrank
