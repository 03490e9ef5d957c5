#include "report/distinct_labels.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "report/markup.h"

namespace olrank {
namespace {

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
