#pragma once

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

/// Boxes of the given sizes, one beside each point, that meet neither each other nor the points nor their
/// vertical lines from `low` to `high`; none where no such place is left. Earlier points choose first.
struct LabelledPoint {
  double x = 0.0;
  double y = 0.0;
  double width = 0.0;
  double height = 0.0;
  double low = 0.0;
  double high = 0.0;
};
std::vector<std::optional<Box>> place_labels(const std::vector<LabelledPoint>& points, const Box& frame,
                                             double distance);

}  // namespace olrank
