#include "report/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

namespace olrank {
namespace {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t place = text.find(word); place != std::string::npos; place = text.find(word, place + 1))
    ++found;
  return found;
}

Plot two_lines() {
  Plot figure;
  figure.title = "Quality";
  figure.series = {
      {"first", 0, {{0, 0.1, 0.0, 0.2, 3}, {100, 0.4, 0.3, 0.5, 3}}},
      {"second", 1, {{0, 0.1, std::nan(""), std::nan(""), 1}, {50, 0.2, std::nan(""), std::nan(""), 1}}}};
  return figure;
}

TEST(LinePlot, DrawsBandsOnlyForLinesWithIntervals) {
  const Drawing drawing = draw(two_lines());
  EXPECT_EQ(count(drawing.body, "class=\"band"), 1U);
  EXPECT_EQ(count(drawing.body, "class=\"line "), 2U);
  EXPECT_EQ(count(drawing.body, ">first</text>"), 1U);
  EXPECT_EQ(count(drawing.body, "nan"), 0U);
  EXPECT_NE(drawing.description.find("first: 0.1 at round 0, 0.4 at round 100 (interval 0.3 to 0.5). "),
            std::string::npos);
  EXPECT_NE(drawing.description.find("second: 0.1 at round 0, 0.2 at round 50. "), std::string::npos);
}

TEST(LinePlot, BaselineIsDashedAndWithinTheFrame) {
  Plot figure = two_lines();
  const std::string csv = plot_csv(figure);
  figure.baseline = {"random", 0, {{0, 0.01, std::nan(""), std::nan(""), 3}, {100, 0.01, 0.0, -1.0, 3}}};
  const Drawing drawing = draw(figure);
  EXPECT_EQ(count(drawing.body, "class=\"line base\""), 1U);
  EXPECT_EQ(count(drawing.body, ">random</text>"), 1U);
  EXPECT_EQ(count(drawing.body, "class=\"band"), 1U);  // of the first line, not of the baseline
  EXPECT_NE(drawing.description.find("random: 0.01 at round 0, 0.01 at round 100. "), std::string::npos);
  // Its numbers come last.
  EXPECT_EQ(plot_csv(figure), csv + "random,0,0.01,,,3\nrandom,100,0.01,0,-1,3\n");
}

TEST(LinePlot, DrawsConstantsSinglePointsAndNoLines) {
  Plot figure = two_lines();
  for (PlotSeries& line : figure.series) {
    for (PlotPoint& point : line.points) point = {point.x, 0.0, 0.0, 0.0, 2};
  }
  EXPECT_EQ(count(draw(figure).body, "nan"), 0U);
  figure.series[0].points.resize(1);
  figure.series[1].points.clear();
  EXPECT_EQ(count(draw(figure).body, "nan"), 0U);
  figure.series.clear();
  EXPECT_EQ(count(draw(figure).body, "nan"), 0U);
}

TEST(LinePlot, DrawsThePartsOfAMeanAsThinLines) {
  Plot figure = two_lines();
  figure.bands = false;
  figure.series[0].parts = {{{0, 0.1}, {100, 0.3}}, {{0, 0.1}, {100, 0.9}}};
  const Drawing drawing = draw(figure);
  EXPECT_EQ(count(drawing.body, "class=\"lead s0\" opacity"), 2U);
  EXPECT_EQ(count(drawing.body, "class=\"band"), 0U);
  EXPECT_EQ(count(drawing.body, ">0.8</text>"), 1U);  // the frame holds them
}

TEST(LinePlot, ThinsOutLongLines) {
  Plot figure;
  figure.series = {{"long", 0, {}}};
  for (int round = 0; round <= 1000; ++round) {
    figure.series[0].points.push_back({1.0 * round, 0.5, std::nan(""), std::nan(""), 1});
    if (round == 0) figure.series[0].parts.emplace_back();
    figure.series[0].parts[0].emplace_back(round, 0.5);
  }
  const Drawing drawing = draw(figure);
  EXPECT_LT(count(drawing.body, "L"), 700U);
  EXPECT_NE(drawing.description.find("0.5 at round 1,000"), std::string::npos);
}

TEST(LinePlot, CutsOffBandsThatWouldFlattenTheLines) {
  Plot figure = two_lines();
  figure.series[0].points[1].high = 1000.0;
  EXPECT_EQ(count(draw(figure).body, ">1,000</text>"), 0U);
  figure.whole_intervals = true;
  EXPECT_EQ(count(draw(figure).body, ">1,000</text>"), 1U);
}

TEST(LinePlot, ExportsItsNumbersAsCsv) {
  EXPECT_EQ(plot_csv(two_lines()),
            "ranker,round,mean,low,high,trials\nfirst,0,0.1,0,0.2,3\nfirst,100,0.4,0.3,0.5,3\n"
            "second,0,0.1,,,1\nsecond,50,0.2,,,1\n");
}

TEST(Drawing, StandaloneFileHasADescription) {
  Drawing drawing = draw(two_lines());
  drawing.title = "<&>";
  const std::string file = standalone_svg(drawing, Theme::kLight);
  for (const char* words : {"xmlns=\"http://www.w3.org/2000/svg\"", "role=\"img\"",
                            "<title id=\"t\">&lt;&amp;&gt;</title>", "<desc id=\"d\">first: "})
    EXPECT_EQ(count(file, words), 1U) << words;
}

TEST(Drawing, StandaloneFileHasLiteralColoursOfItsTheme) {
  Plot figure = two_lines();
  figure.series[0].name = "of class=\"line s0\"";  // an odd name stays as it is
  const Drawing drawing = draw(figure);
  const std::string light = standalone_svg(drawing, Theme::kLight);
  const std::string dark = standalone_svg(drawing, Theme::kDark);
  for (const std::string& file : {light, dark}) {
    for (const char* words : {" class=\"", "<style", " style=\"", "var(", "@"})
      EXPECT_EQ(count(file, words), 0U) << words;
    EXPECT_GT(count(file, "class=&quot;line s0&quot;"), 0U);
  }
  EXPECT_GT(count(light, "fill=\"#ffffff\""), 0U);
  EXPECT_GT(count(light, "stroke=\"#0072b2\""), 0U);
  EXPECT_EQ(count(dark, "#0072b2"), 0U);
  EXPECT_GT(count(dark, "stroke=\"#56b4e9\""), 0U);
}

TEST(Drawing, LaterStylesOverrideEarlierOnes) {
  EXPECT_EQ(literal_styles("<path class=\"line base\"/>", Theme::kLight),
            "<path fill=\"none\" stroke-width=\"1.2\" stroke-linejoin=\"round\" stroke=\"#5a606b\" "
            "stroke-dasharray=\"3 3\"/>");
  EXPECT_THROW(literal_styles("<path class=\"line unknown\"/>", Theme::kLight), std::logic_error);
}

TEST(BarPlot, StacksPartsUpToTheTotal) {
  const Plot figure{PlotKind::kBars,
                    "Time",
                    "",
                    "",
                    "ms",
                    {"rank", "train"},
                    {{"slow", 0, {{0.0, 1.0}, {0.0, 3.0}}}, {"fast", 1, {{0.0, 0.5}, {0.0, 0.0}}}}};
  const Drawing drawing = draw(figure);
  EXPECT_EQ(count(drawing.body, "class=\"part"), 3U);  // none for a part of 0
  EXPECT_EQ(count(drawing.body, "width=\"300.0\""), 1U);
  EXPECT_EQ(count(drawing.body, ">4 ms</text>"), 1U);
  EXPECT_EQ(plot_csv(figure), "ranker,rank,train\nslow,1,3\nfast,0.5,0\n");
}

TEST(ScatterPlot, DrawsEveryPointWithItsInterval) {
  const Plot figure{PlotKind::kScatter,
                    "Quality",
                    "",
                    "ms",
                    "NDCG",
                    {},
                    {{"a", 0, {{0.01, 0.3, 0.25, 0.35}}}, {"b", 1, {{1.0, 0.4}}}}};
  const Drawing drawing = draw(figure);
  EXPECT_EQ(count(drawing.body, "class=\"mark"), 2U);
  EXPECT_EQ(count(drawing.body, "class=\"lead"), 1U);
  EXPECT_EQ(count(drawing.body, ">0.1</text>"), 1U);  // a logarithmic axis
  EXPECT_EQ(plot_csv(figure), "ranker,ms,NDCG,low,high\na,0.01,0.3,0.25,0.35\nb,1,0.4,,\n");
}

TEST(ScatterPlot, DrawsDotsBehindItsPoints) {
  const PlotSeries one{"a", 3, {{0.0, 0.0}}, {{{-2.0, 1.0}, {2.0, -1.0}, {0.5, 0.0}}}};
  const Drawing drawing = draw({PlotKind::kScatter, "Cloud", "", "x", "y", {}, {one}});
  EXPECT_EQ(count(drawing.body, "h2v2h-2z"), 3U);
  EXPECT_EQ(count(drawing.body, "class=\"mark"), 1U);
  EXPECT_EQ(count(drawing.body, ">-2</text>") + count(drawing.body, ">−2</text>"),
            1U);  // the axis has room for them
}

Plot three_differences() {
  Plot figure;
  figure.kind = PlotKind::kDifferences;
  figure.title = "Minus full";
  figure.x_name = "difference";
  figure.variant_name = "m";
  figure.series = {{"diagonal", 1, {{0.0, -0.02, -0.03, -0.01}}, {}, "8", true},
                   {"diagonal", 1, {{0.0, 0.01, -0.01, 0.03}}, {}, "16"},
                   {"none", 2, {{0.0, 0.0}}, {}, "8"}};
  return figure;
}

TEST(DifferencePlot, FillsTheMarksOfSignificantDifferences) {
  const Drawing drawing = draw(three_differences());
  EXPECT_EQ(count(drawing.body, "class=\"mark"), 1U);
  EXPECT_EQ(count(drawing.body, "class=\"hollow"), 2U);
  EXPECT_EQ(count(drawing.body, "class=\"bar"), 2U);
  EXPECT_EQ(count(drawing.body, ">diagonal</text>"), 1U);  // once for both of its rows
  EXPECT_EQ(drawing.description,
            "diagonal, m 8: −0.02 (−0.03 to −0.01), significant. diagonal, m 16: 0.01 (−0.01 to 0.03). "
            "none, m 8: 0. ");
  EXPECT_EQ(plot_csv(three_differences()),
            "name,m,difference,low,high,significant\ndiagonal,8,-0.02,-0.03,-0.01,1\n"
            "diagonal,16,0.01,-0.01,0.03,0\nnone,8,0,,,0\n");
}

TEST(DifferencePlot, CutsOffIntervalsThatWouldFlattenTheDifferences) {
  Plot figure = three_differences();
  figure.series[1].points[0].high = 50.0;
  EXPECT_EQ(count(draw(figure).body, ">20</text>"), 0U);
  EXPECT_EQ(count(draw(figure).body, ">0.05</text>"), 1U);
}

TEST(DifferencePlot, DrawsRatiosAndNoDifferences) {
  Plot figure = three_differences();
  figure.no_difference = 1.0;
  for (PlotSeries& row : figure.series) row.points = {{0.0, 0.1, 0.05, 0.2}};
  EXPECT_EQ(count(draw(figure).body, ">0.1</text>"), 1U);
  EXPECT_EQ(count(draw(figure).body, ">1</text>"), 1U);
  for (PlotSeries& row : figure.series) row.points = {{0.0, 1.0, 1.0, 1.0}};
  EXPECT_EQ(count(draw(figure).body, "nan"), 0U);
  figure.series.clear();
  EXPECT_EQ(count(draw(figure).body, "nan"), 0U);
}

}  // namespace
}  // namespace olrank
