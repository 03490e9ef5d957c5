#include "report/labels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/random/rng_stream.h"
#include "report/markup.h"

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

constexpr double kFont = 11.0;

std::vector<std::string> labels_in(const std::vector<std::string>& names, double width) {
  const std::vector<std::string> labels = distinct_labels(names, kFont, width);
  EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(),
            std::set<std::string>(names.begin(), names.end()).size());
  for (const std::string& label : labels) EXPECT_LE(text_width(label, kFont), width) << label;
  return labels;
}

TEST(DistinctLabels, KeepShortNames) {
  EXPECT_EQ(labels_in({"pairrank", "pdgd"}, 100.0), (std::vector<std::string>{"pairrank", "pdgd"}));
}

TEST(DistinctLabels, ShowThePartThatDiffers) {
  const std::string start = "a-ranker-with-quite-a-long-name+alpha=";
  const std::vector<std::string> labels =
      labels_in({start + "0.001+lambda=100+depth=2", start + "0.01+lambda=100+depth=2"}, 100.0);
  EXPECT_EQ(labels[0], "…alpha=0.001…");
  EXPECT_EQ(labels[1], "…alpha=0.01…");
}

TEST(DistinctLabels, ShowWholeWords) {
  const std::string start = "olranknet-standard-nesterov-";
  const std::string end = "-width-100-depth-2-lambda-20";
  const std::vector<std::string> labels =
      labels_in({start + "diagonal" + end, start + "diagnosis" + end}, 104.0);
  EXPECT_NE(labels[0].find("diagonal"), std::string::npos) << labels[0];
  EXPECT_NE(labels[1].find("diagnosis"), std::string::npos) << labels[1];
}

TEST(DistinctLabels, TellManyNamesApart) {
  const std::string start(40, 'x');
  std::vector<std::string> names;
  for (const char* alpha : {"0.1", "0.2"}) {
    for (const char* lambda : {"10", "20"})
      names.push_back(start + "-alpha=" + alpha + std::string(20, 'y') + "-lambda=" + lambda +
                      "-end-of-the-name");
  }
  labels_in(names, 90.0);
  // Without separators, and with nothing but a length to tell them apart.
  labels_in({std::string(60, 'M'), std::string(61, 'M'), std::string(62, 'M')}, 90.0);
  labels_in({std::string(30, 'a') + "1" + std::string(30, 'b'),
             std::string(30, 'a') + "2" + std::string(30, 'b')},
            90.0);
  labels_in({"äöü" + std::string(40, 'a') + "-é-" + std::string(40, 'b'),
             "äöü" + std::string(40, 'a') + "-è-" + std::string(40, 'b')},
            90.0);
}

TEST(DistinctLabels, AreEqualForEqualNames) {
  const std::string name(60, 'a');
  const std::vector<std::string> labels = distinct_labels({name, name}, kFont, 90.0);
  EXPECT_EQ(labels[0], labels[1]);
}

TEST(SvgLabel, HasTheWholeNameAsTooltip) {
  EXPECT_EQ(svg_label(1.0, 2.0, "a…c", "a<b>c"),
            "<text x=\"1.0\" y=\"2.0\"><title>a&lt;b&gt;c</title>a…c</text>");
  EXPECT_EQ(svg_label(1.0, 2.0, "abc", "abc").find("<title>"), std::string::npos);
}

}  // namespace
}  // namespace olrank
