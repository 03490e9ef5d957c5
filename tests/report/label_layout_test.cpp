#include "report/label_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

TEST(SpreadLabels, MovesOnlyLabelsThatTouch) {
  EXPECT_EQ(spread_labels({10.0, 50.0, 90.0}, 12.0, 0.0, 100.0), (std::vector{10.0, 50.0, 90.0}));
  EXPECT_EQ(spread_labels({50.0, 50.0}, 12.0, 0.0, 100.0), (std::vector{44.0, 56.0}));
  EXPECT_EQ(spread_labels({98.0, 99.0, 3.0}, 10.0, 0.0, 100.0), (std::vector{90.0, 100.0, 3.0}));
  EXPECT_TRUE(spread_labels({}, 12.0, 0.0, 100.0).empty());
}

TEST(SpreadLabels, KeepsOrderGapAndBounds) {
  RngStream random(make_key({.seed = 3, .purpose = Purpose::kProbe}), 0);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<double> wanted(1 + random.index(14));
    for (double& height : wanted) height = 200.0 * random.uniform();
    const std::vector<double> placed = spread_labels(wanted, 13.0, 0.0, 200.0);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_GE(placed[i], -1e-9);
      EXPECT_LE(placed[i], 200.0 + 1e-9);
      for (std::size_t j = 0; j < wanted.size(); ++j) {
        if (wanted[i] < wanted[j]) {
          EXPECT_GE(placed[j] - placed[i], 13.0 - 1e-9);
        }
      }
    }
  }
}

/// The leader line to a label crosses no other point or label.
void expect_clear_leader(const std::vector<LabelledPoint>& points,
                         const std::vector<std::optional<LabelPlace>>& places, std::size_t led) {
  const double dx = places[led]->lead_x(points[led]) - points[led].x;
  const double dy = places[led]->lead_y(points[led]) - points[led].y;
  for (double part = 0.05; part < 1.0; part += 0.05) {
    if (part * std::hypot(dx, dy) < 10.0) continue;  // still within its own point
    const double x = points[led].x + part * dx;
    const double y = points[led].y + part * dy;
    for (std::size_t j = 0; j < points.size(); ++j) {
      if (j == led) continue;
      EXPECT_GT(std::hypot(x - points[j].x, y - points[j].y), 4.0);
      EXPECT_FALSE(places[j] && places[j]->box.meets({x, y, x, y}));
    }
  }
}

TEST(PlaceLabels, OverlapNothingAndStayInTheFrame) {
  RngStream random(make_key({.seed = 4, .purpose = Purpose::kProbe}), 0);
  const Box frame{0.0, 0.0, 400.0, 200.0};
  int placed_labels = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<LabelledPoint> points(8);
    for (LabelledPoint& point : points) {
      const double y = 200.0 * random.uniform();
      point = {400.0 * random.uniform(), y, 40.0 + 60.0 * random.uniform(), 12.0, y + 15.0, y - 15.0};
    }
    const auto places = place_labels(points, frame, 6.0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!places[i]) continue;
      ++placed_labels;
      EXPECT_TRUE(places[i]->box.within(frame));
      for (const LabelledPoint& point : points)
        EXPECT_FALSE(places[i]->box.meets({point.x - 1.0, point.high, point.x + 1.0, point.low}));
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(places[j] && places[i]->box.meets(places[j]->box));
      if (places[i]->needs_leader) expect_clear_leader(points, places, i);
    }
  }
  EXPECT_GT(placed_labels, 1580);  // of 1,600
}

TEST(PlaceLabels, LeadersAvoidOtherPoints) {
  // The middle point's neighbours leave no room for an adjacent label.
  const Box frame{0.0, 0.0, 400.0, 200.0};
  const std::vector<LabelledPoint> points{{200.0, 100.0, 60.0, 12.0, 180.0, 20.0},
                                          {212.0, 100.0, 60.0, 12.0, 180.0, 20.0},
                                          {224.0, 100.0, 60.0, 12.0, 180.0, 20.0}};
  const auto places = place_labels(points, frame, 6.0);
  for (const auto& place : places) ASSERT_TRUE(place);
  EXPECT_FALSE(places[0]->needs_leader);
  EXPECT_FALSE(places[2]->needs_leader);
  ASSERT_TRUE(places[1]->needs_leader);
  // The nearest place would be straight through a neighbour.
  EXPECT_GT(std::abs(places[1]->lead_y(points[1]) - points[1].y), 10.0);
}

}  // namespace
}  // namespace olrank
