#include "report/curve_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/io/atomic_file.h"
#include "core/runtime/stage_clock.h"
#include "sim/curve.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

CurvePoint point_at(std::int64_t round) {
  CurvePoint point;
  point.round = round;
  point.cutoff = 5;
  point.offline_ndcg = 0.25;
  point.online_ndcg = 0.125;
  point.discounted_ndcg = 3.5;
  point.regret = 17;
  point.certain_share = 0.75;
  point.blocks = 4.5;
  point.block_size = {1.0, 2.0, std::nullopt, std::nullopt, 5.0};
  point.cosine = 0.5;
  point.width_ratio = WidthRatio{1.5, 1.25, 2.0};
  point.random = {0.0625, 0.03125, 1.5, 20.5};
  return point;
}

TEST(CurveReader, ReadsTheLinesThatTrialsWrite) {
  TemporaryFolder folder;
  StageClock clock;
  std::string text = curve_line(CurvePoint{}, &clock);
  clock.add("train", 0.5);
  clock.add("eval", 100.0);
  text += curve_line(point_at(250), &clock);
  write_file_atomically(folder / "curve.jsonl", text);
  const RecordedCurve curve = read_curve(folder / "curve.jsonl");
  ASSERT_EQ(curve.points.size(), 2U);
  EXPECT_EQ(curve.damage, "");
  EXPECT_EQ(curve.cutoff, 5);
  EXPECT_TRUE(std::isnan(curve.points[0].values[Measure::kCertainShare]));
  EXPECT_TRUE(std::isnan(curve.points[0].values[Measure::kMilliseconds]));
  EXPECT_EQ(curve.points[1].round, 250);
  const MeasureValues& values = curve.points[1].values;
  EXPECT_EQ(values[Measure::kOfflineNdcg], 0.25);
  EXPECT_EQ(values[Measure::kOnlineNdcg], 0.125);
  EXPECT_EQ(values[Measure::kDiscountedNdcg], 3.5);
  EXPECT_EQ(values[Measure::kRegret], 17.0);
  EXPECT_EQ(values[Measure::kRandomOfflineNdcg], 0.0625);
  EXPECT_EQ(values[Measure::kRandomOnlineNdcg], 0.03125);
  EXPECT_EQ(values[Measure::kRandomDiscountedNdcg], 1.5);
  EXPECT_EQ(values[Measure::kRandomRegret], 20.5);
  EXPECT_EQ(values[Measure::kCertainShare], 0.75);
  EXPECT_EQ(values[Measure::kBlocks], 4.5);
  EXPECT_EQ(values[block_size_at(1)], 2.0);
  EXPECT_TRUE(std::isnan(values[block_size_at(2)]));  // absent
  EXPECT_EQ(values[block_size_at(4)], 5.0);
  EXPECT_EQ(values[Measure::kCosine], 0.5);
  EXPECT_EQ(values[Measure::kWidthRatio], 1.5);
  EXPECT_EQ(values[Measure::kWidthRatioLow], 1.25);
  EXPECT_EQ(values[Measure::kWidthRatioHigh], 2.0);
  EXPECT_DOUBLE_EQ(values[Measure::kMilliseconds], 2.0);  // excludes evaluation
}

TEST(CurveReader, ReadsAddedMetricsAndTheirRandomOrders) {
  TemporaryFolder folder;
  CurvePoint point = point_at(100);
  point.metrics = {{"ndcg@10", 0.5, 0.25}, {"map", 0.375, std::nan("")}, {"future@3", 1.0, 0.0}};
  const StageClock clock;
  write_file_atomically(folder / "curve.jsonl", curve_line(point, &clock));
  const RecordedCurve curve = read_curve(folder / "curve.jsonl");
  ASSERT_EQ(curve.damage, "");
  const MeasureValues& values = curve.points.at(0).values;
  EXPECT_EQ(curve.cutoff, 5);
  EXPECT_EQ(values[Measure::kOfflineNdcg], 0.25);
  const NamedMetric ndcg{MetricKind::kNdcg, 10};
  const NamedMetric map{MetricKind::kMap, 0};
  EXPECT_EQ(values[measure_of(ndcg)], 0.5);
  EXPECT_EQ(values[random_measure_of(ndcg)], 0.25);
  EXPECT_EQ(values[measure_of(map)], 0.375);
  EXPECT_TRUE(std::isnan(values[random_measure_of(map)]));
  EXPECT_EQ(values.added(), (std::vector{measure_of(ndcg), measure_of(map), random_measure_of(ndcg)}));
  EXPECT_EQ(title_of(measure_of(map), 5), "Offline MAP");
  EXPECT_EQ(slug_of(random_measure_of(ndcg)), "random-offline-ndcg-at-10");
  EXPECT_EQ(random_baseline(measure_of(ndcg)), random_measure_of(ndcg));
}

TEST(CurveReader, EndsBeforeTheFirstDamagedLine) {
  TemporaryFolder folder;
  const std::string first = curve_line(point_at(0), nullptr);
  const std::string second = curve_line(point_at(100), nullptr);
  const std::string third = curve_line(point_at(200), nullptr);
  // A run may have been writing any proper prefix of the third line.
  for (std::size_t kept = 1; kept < third.size(); ++kept) {
    write_file_atomically(folder / "c", first + second + third.substr(0, kept));
    const RecordedCurve curve = read_curve(folder / "c");
    EXPECT_EQ(curve.points.size(), 2U) << kept;
    EXPECT_NE(curve.damage.find("c:3: This line is incomplete"), std::string::npos) << kept;
  }
  for (const std::string& damaged :
       {std::string("\n"), std::string("[1]\n"), std::string("{\"round\":150}\n"),
        std::string("\xff\xfe\n"), std::string("{}{}\n"), first}) {
    write_file_atomically(folder / "c", first + second + damaged + third);
    const RecordedCurve curve = read_curve(folder / "c");
    EXPECT_EQ(curve.points.size(), 2U) << damaged;
    EXPECT_NE(curve.damage.find("c:3:"), std::string::npos) << damaged;
  }
}

TEST(CurveReader, AcceptsAnEmptyCurve) {
  TemporaryFolder folder;
  write_file_atomically(folder / "c", "");
  const RecordedCurve curve = read_curve(folder / "c");
  EXPECT_TRUE(curve.points.empty());
  EXPECT_EQ(curve.damage, "");
}

}  // namespace
}  // namespace olrank
