#include "report/label_layout.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace olrank {
namespace {

/// Labels that stand together, `gap` apart, around a common centre.
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

std::vector<std::optional<Box>> place_labels(const std::vector<LabelledPoint>& points, const Box& frame,
                                             double distance) {
  std::vector<Box> taken;
  for (const LabelledPoint& point : points) {
    const double radius = 0.75 * distance;
    taken.push_back({point.x - radius, point.y - radius, point.x + radius, point.y + radius});
    taken.push_back({point.x - 2.0, point.high, point.x + 2.0, point.low});
  }
  std::vector<std::optional<Box>> placed;
  for (const LabelledPoint& point : points) {
    const double w = point.width;
    const double h = point.height;
    const double middle = point.y - 0.5 * h;
    const double above = point.y - distance - h;
    const double below = point.y + distance;
    const double right = point.x + distance;
    const double left = point.x - distance - w;
    const double centred = point.x - 0.5 * w;
    std::optional<Box> found;
    for (const auto& [x, y] : {std::pair{right, middle},
                               {left, middle},
                               {centred, above},
                               {centred, below},
                               {right, above},
                               {right, below},
                               {left, above},
                               {left, below}}) {
      const Box box{x, y, x + w, y + h};
      const bool free =
          std::none_of(taken.begin(), taken.end(), [&](const Box& other) { return box.meets(other); });
      if (!free || !box.within(frame)) continue;
      found = box;
      taken.push_back(box);
      break;
    }
    placed.push_back(found);
  }
  return placed;
}

}  // namespace olrank
