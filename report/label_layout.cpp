#include "report/label_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace olrank {
namespace {

/// Adjacent labels, `gap` apart, around a common centre.
struct Cluster {
  double centre = 0.0;
  std::size_t count = 0;

  double first(double gap) const { return centre - 0.5 * gap * static_cast<double>(count - 1); }
  double last(double gap) const { return centre + 0.5 * gap * static_cast<double>(count - 1); }
};

void keep_within(Cluster& cluster, double gap, double low, double high) {
  const double half = 0.5 * gap * static_cast<double>(cluster.count - 1);
  cluster.centre = std::max(low + half, std::min(high - half, cluster.centre));
}

/// Places labels one at a time.
class LabelPlacer {
 public:
  LabelPlacer(const std::vector<LabelledPoint>& points, const Box& frame, double distance)
      : frame_(frame), distance_(distance), radius_(0.75 * distance) {
    for (const LabelledPoint& point : points) {
      taken_.push_back({point.x - radius_, point.y - radius_, point.x + radius_, point.y + radius_});
      lines_.push_back({point.x - 2.0, point.high, point.x + 2.0, point.low});
    }
  }

  /// Tries places at a multiple of the basic distance.
  std::optional<LabelPlace> place(const LabelledPoint& point, double distances) {
    for (const Box& box : boxes_around(point, distances * distance_)) {
      const LabelPlace place{box, distances > 1.0};
      if (!box.within(frame_) || meets_any(box, lines_) || meets_any(box, taken_)) continue;
      const std::vector<Box> lead = lead_to(place, point);
      const auto crosses = [&](const Box& dot) { return meets_any(dot, taken_); };
      if (std::any_of(lead.begin(), lead.end(), crosses)) continue;
      taken_.push_back(box);
      taken_.insert(taken_.end(), lead.begin(), lead.end());
      return place;
    }
    return std::nullopt;
  }

 private:
  static bool meets_any(const Box& box, const std::vector<Box>& others) {
    return std::any_of(others.begin(), others.end(), [&](const Box& other) { return box.meets(other); });
  }

  static std::array<Box, 8> boxes_around(const LabelledPoint& point, double distance) {
    const double w = point.width;
    const double h = point.height;
    const double middle = point.y - 0.5 * h;
    const double above = point.y - distance - h;
    const double below = point.y + distance;
    const double right = point.x + distance;
    const double left = point.x - distance - w;
    const double centred = point.x - 0.5 * w;
    const auto box = [&](double x, double y) { return Box{x, y, x + w, y + h}; };
    return {box(right, middle), box(left, middle), box(centred, above), box(centred, below),
            box(right, above),  box(right, below), box(left, above),    box(left, below)};
  }

  /// The leader line as dots, starting outside the point.
  std::vector<Box> lead_to(const LabelPlace& place, const LabelledPoint& point) const {
    std::vector<Box> dots;
    if (!place.needs_leader) return dots;
    const double dx = place.lead_x(point) - point.x;
    const double dy = place.lead_y(point) - point.y;
    const double length = std::hypot(dx, dy);
    for (double at = 1.5 * radius_ + 2.0; at < length - 1.0; at += 2.0) {
      const double x = point.x + dx * at / length;
      const double y = point.y + dy * at / length;
      dots.push_back({x - 1.0, y - 1.0, x + 1.0, y + 1.0});
    }
    return dots;
  }

  Box frame_;
  double distance_;
  double radius_;           // of a point
  std::vector<Box> lines_;  // the points' vertical lines; leader lines may cross them
  std::vector<Box> taken_;  // by points, labels and leader lines
};

}  // namespace

std::vector<double> spread_labels(const std::vector<double>& wanted, double gap, double low, double high) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  std::vector<Cluster> clusters;
  for (const std::size_t label : order) {
    clusters.push_back({wanted[label], 1});
    keep_within(clusters.back(), gap, low, high);
    while (clusters.size() > 1) {
      Cluster& above = clusters[clusters.size() - 2];
      const Cluster& below = clusters.back();
      if (above.last(gap) + gap <= below.first(gap) + 1e-9) break;
      const auto a = static_cast<double>(above.count);
      const auto b = static_cast<double>(below.count);
      above.centre = (a * above.centre + b * below.centre) / (a + b);
      above.count += below.count;
      clusters.pop_back();
      keep_within(clusters.back(), gap, low, high);
    }
  }
  std::vector<double> placed(wanted.size());
  std::size_t next = 0;
  for (const Cluster& cluster : clusters) {
    for (std::size_t i = 0; i < cluster.count; ++i)
      placed[order[next++]] = cluster.first(gap) + gap * static_cast<double>(i);
  }
  return placed;
}

std::vector<std::optional<LabelPlace>> place_labels(const std::vector<LabelledPoint>& points,
                                                    const Box& frame, double distance) {
  LabelPlacer placer(points, frame, distance);
  std::vector<std::optional<LabelPlace>> places(points.size());
  for (const double distances : {1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 11.0}) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!places[i]) places[i] = placer.place(points[i], distances);
    }
  }
  return places;
}

}  // namespace olrank
