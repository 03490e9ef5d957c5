#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/text/text_table.h"
#include "report/markup.h"
#include "report/plot.h"

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

TEST(DistinctLabels, ShowWholeWordsOfThePartThatDiffers) {
  EXPECT_EQ(labels_in({"pairrank", "pdgd"}, 100.0), (std::vector<std::string>{"pairrank", "pdgd"}));
  const std::string start = "a-ranker-with-quite-a-long-name+alpha=";
  EXPECT_EQ(labels_in({start + "0.001+lambda=100+depth=2", start + "0.01+lambda=100+depth=2"}, 100.0),
            (std::vector<std::string>{"…alpha=0.001…", "…alpha=0.01…"}));
  const std::string kind = "olranknet-standard-nesterov-";
  const std::string end = "-width-100-depth-2-lambda-20";
  const auto labels = labels_in({kind + "diagonal" + end, kind + "diagnosis" + end}, 104.0);
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
  // Equal names have equal labels.
  const auto labels = labels_in({std::string(60, 'a'), std::string(60, 'a')}, 90.0);
  EXPECT_EQ(labels[0], labels[1]);
}

TEST(SvgLabel, HasTheWholeNameAsTooltip) {
  EXPECT_EQ(svg_label(1.0, 2.0, "a…c", "a<b>c"),
            "<text x=\"1.0\" y=\"2.0\"><title>a&lt;b&gt;c</title>a…c</text>");
  EXPECT_EQ(svg_label(1.0, 2.0, "abc", "abc").find("<title>"), std::string::npos);
}

TEST(Markup, EscapesHtml) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&lt;/a&gt;");
  EXPECT_EQ(escape_html("μ ± ½"), "μ ± ½");
}

TEST(Markup, EscapesLatex) {
  EXPECT_EQ(
      escape_latex("50%_$x^2 {a&b}#~\\<"),
      "50\\%\\_\\$x\\textasciicircum{}2 \\{a\\&b\\}\\#\\textasciitilde{}\\textbackslash{}\\textless{}");
  // Two hyphens would become a dash.
  EXPECT_EQ(escape_latex("--α=1|\"ν²"), "-{}-$\\alpha$=1\\textbar{}\\symbol{34}$\\nu$$^2$");
  EXPECT_EQ(escape_latex("naïve 学 þ\x01"), "naïve ? ??");
}

TEST(Markup, ReplacesInvalidUtf8AndControlCharacters) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(clean_utf8("a\x01\xffz\xc3"), "a" + replacement + replacement + "z" + replacement);
  EXPECT_EQ(clean_utf8("\xed\xa0\x80").substr(0, 3), replacement);  // half of a surrogate pair
  EXPECT_EQ(clean_utf8("\xf0\x9f\x99\x82"), "\xf0\x9f\x99\x82");
}

TEST(Markup, SlugsAreLettersDigitsAndHyphens) {
  EXPECT_EQ(name_slug("<b>a_user & b"), "b-a-user-b");
  EXPECT_EQ(name_slug("ν²"), "x");
  EXPECT_EQ(name_slug(std::string(99, 'a')).size(), 60U);
}

TEST(Shortened, KeepsBothEndsAndFits) {
  EXPECT_EQ(shortened("short", 11.0, 100.0), "short");
  const std::string text = shortened("a-very-long-name-of-a-ranker-with-alpha=0.1", 11.0, 100.0);
  EXPECT_LE(text_width(text, 11.0), 100.0);
  EXPECT_GT(text_width(text, 11.0), 85.0);
  EXPECT_EQ(text.substr(0, 6), "a-very");
  EXPECT_EQ(text.substr(text.size() - 4), "=0.1");
}

TEST(ShortNumber, RoundsAndGroupsDigits) {
  EXPECT_EQ(short_number(0.123456), "0.1235");
  EXPECT_EQ(short_number(1538400.0), "1,538,400");
  EXPECT_EQ(short_number(-12345.0), "−12,345");
  EXPECT_EQ(short_number(-0.5), "−0.5");
  EXPECT_EQ(short_number(std::nan("")), "none");
}

TEST(FixedNumber, HasTheDigitsAskedForAndATrueMinus) {
  EXPECT_EQ(fixed_number(0.49136, 4), "0.4914");
  EXPECT_EQ(fixed_number(-0.0042, 4), "−0.0042");
  EXPECT_EQ(fixed_number(-0.00001, 4), "0.0000");
  EXPECT_EQ(fixed_number(1234567.25, 1), "1,234,567.2");
  EXPECT_EQ(fixed_number(-123456.0, 0), "−123,456");
  EXPECT_EQ(fixed_number(-123.0, 0), "−123");
  EXPECT_EQ(fixed_number(999.0, 0), "999");
  EXPECT_EQ(fixed_number(std::nan(""), 2), "–");
}

TEST(EstimateText, HasAnIntervalIfThereIsOne) {
  EXPECT_EQ(estimate_text(mean_interval({{1.0, 3.0}}), 1), "2.0 ± 12.7");
  EXPECT_EQ(estimate_text(mean_interval({{1.0}}), 1), "1.0");
}

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
  figure.series[0].points[0].y = 1.4;
  figure.series[0].points[1].y = std::nextafter(1.4, 2.0);  // a mean's rounding
  figure.bands = false;
  figure.series.resize(1);
  EXPECT_LE(count(draw(figure).body, "class=\"grid\""), 8U);
  figure = two_lines();
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

TEST(ScatterPlot, DrawsEveryPointWithItsInterval) {
  const Plot figure{PlotKind::kScatter,
                    "Quality",
                    "",
                    "ms",
                    "NDCG",
                    {{"a", 0, {{0.01, 0.3, 0.25, 0.35}}}, {"b", 1, {{1.0, 0.4}}}}};
  const Drawing drawing = draw(figure);
  EXPECT_EQ(count(drawing.body, "class=\"mark"), 2U);
  EXPECT_EQ(count(drawing.body, "class=\"lead"), 1U);
  EXPECT_EQ(count(drawing.body, ">0.1</text>"), 1U);  // a logarithmic axis
  EXPECT_EQ(plot_csv(figure), "ranker,ms,NDCG,low,high\na,0.01,0.3,0.25,0.35\nb,1,0.4,,\n");
}

TEST(ScatterPlot, DrawsDotsBehindItsPoints) {
  const PlotSeries one{"a", 3, {{0.0, 0.0}}, {{{-2.0, 1.0}, {2.0, -1.0}, {0.5, 0.0}}}};
  const Drawing drawing = draw({PlotKind::kScatter, "Cloud", "", "x", "y", {one}});
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

std::vector<std::string> labels(const Scale& scale, int wanted = 5) {
  std::vector<std::string> found;
  for (const Tick& tick : scale.ticks(wanted)) found.push_back(tick.label);
  return found;
}

using Labels = std::vector<std::string>;

TEST(Ticks, AreRoundValuesWithinTheRange) {
  EXPECT_EQ(labels({0.0, 1000.0, 0.0, 1.0}, 4), (Labels{"0", "500", "1,000"}));
  EXPECT_EQ(labels({0.13, 0.47, 0.0, 1.0}), (Labels{"0.2", "0.3", "0.4"}));
  EXPECT_EQ(labels({-0.1, 0.1, 0.0, 1.0}, 4), (Labels{"−0.10", "−0.05", "0", "0.05", "0.10"}));
  EXPECT_EQ(labels({0.0, 2.5e6, 0.0, 1.0}), (Labels{"0", "500k", "1M", "1.5M", "2M", "2.5M"}));
  EXPECT_EQ(labels({0.9982, 0.9991, 0.0, 1.0}, 4), (Labels{"0.9985", "0.9990"}));
}

TEST(Ticks, ArePowersOfTenOnLogarithmicAxes) {
  EXPECT_EQ(labels({0.5, 200.0, 0.0, 1.0, true}),
            (Labels{"0.5", "1", "2", "5", "10", "20", "50", "100", "200"}));
  EXPECT_EQ(labels({0.5, 2e4, 0.0, 1.0, true}), (Labels{"1", "10", "100", "1,000", "10k"}));
}

TEST(Scale, MapsEndsToEnds) {
  const Scale plain(2.0, 4.0, 100.0, 0.0);
  EXPECT_DOUBLE_EQ(plain(2.0), 100.0);
  EXPECT_DOUBLE_EQ(plain(3.0), 50.0);
  const Scale logarithmic(1.0, 100.0, 0.0, 10.0, true);
  EXPECT_DOUBLE_EQ(logarithmic(10.0), 5.0);
}

}  // namespace
}  // namespace olrank
