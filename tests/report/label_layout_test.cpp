#include "report/label_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

TEST(SpreadLabels, LeavesWhatIsFreeAndPartsWhatTouches) {
  EXPECT_EQ(spread_labels({10.0, 50.0, 90.0}, 12.0, 0.0, 100.0), (std::vector{10.0, 50.0, 90.0}));
  EXPECT_EQ(spread_labels({50.0, 50.0}, 12.0, 0.0, 100.0), (std::vector{44.0, 56.0}));
  EXPECT_EQ(spread_labels({98.0, 99.0, 3.0}, 10.0, 0.0, 100.0), (std::vector{90.0, 100.0, 3.0}));
  EXPECT_TRUE(spread_labels({}, 12.0, 0.0, 100.0).empty());
}

TEST(SpreadLabels, KeepsOrderDistanceAndFrame) {
  RngStream coins(make_key({.seed = 3, .purpose = Purpose::kProbe}), 0);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<double> wanted(1 + coins.index(14));
    for (double& height : wanted) height = 200.0 * coins.uniform();
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

TEST(PlaceLabels, MeetNothingAndStayInside) {
  RngStream coins(make_key({.seed = 4, .purpose = Purpose::kProbe}), 0);
  const Box frame{0.0, 0.0, 400.0, 200.0};
  int placed_labels = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<LabelledPoint> points(8);
    for (LabelledPoint& point : points) {
      const double y = 200.0 * coins.uniform();
      point = {400.0 * coins.uniform(), y, 40.0 + 60.0 * coins.uniform(), 12.0, y + 15.0, y - 15.0};
    }
    const auto boxes = place_labels(points, frame, 6.0);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (!boxes[i]) continue;
      ++placed_labels;
      EXPECT_TRUE(boxes[i]->within(frame));
      for (const LabelledPoint& point : points)
        EXPECT_FALSE(boxes[i]->meets({point.x - 1.0, point.high, point.x + 1.0, point.low}));
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(boxes[j] && boxes[i]->meets(*boxes[j]));
    }
  }
  EXPECT_GT(placed_labels, 1400);  // of 1,600
}

}  // namespace
}  // namespace olrank
