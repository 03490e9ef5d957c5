#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "bench/device/device_case.h"
#include "bench/device/device_report.h"
#include "bench/device/libtorch_forms.h"
#include "core/error.h"
#include "tests/cuda/emulation/device_work.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

// The cases of the device bench, with the kernels' own source on the CPU: each runs, and its form in
// LibTorch calls computes the same.

std::vector<DeviceCase> rehearsed_cases() {
  std::string absence;
  return device_cases(find_bench_device(absence).value().sizes);
}

TEST(DeviceBenchTest, EveryCaseRunsAndMatchesLibtorch) {
  int compared = 0;
  for (const DeviceCase& one : rehearsed_cases()) {
    SCOPED_TRACE(one.identity());
    at::manual_seed(1);
    const DeviceWork work = one.prepare(nullptr);
    const auto refresh = [&] {
      if (work.refresh) work.refresh();
    };
    refresh();
    if (work.libtorch) {
      ASSERT_TRUE(work.disagreement);
      EXPECT_LE(work.disagreement(nullptr), work.tolerance);
      work.libtorch();
      ++compared;
    }
    for (int repeat = 0; repeat < 2; ++repeat) {
      refresh();
      work.own(nullptr);
    }
    if (work.refresh) {
      EXPECT_GT(work.disagreement(nullptr), 0.1) << "no refresh is needed";
      refresh();
    }
    if (work.disagreement) {
      EXPECT_LE(work.disagreement(nullptr), work.tolerance) << "after repeats";
    }
  }
  EXPECT_GE(compared, 20);
}

TEST(DeviceBenchTest, InputsAreRefreshedBeforeEachTimedCall) {
  std::string order;
  device_seconds([&] { order += 'w'; }, [&] { order += 'r'; });
  EXPECT_EQ(order, "rwrw");
}

// A round's widths in the primal form: G, G times the inverse, two products that correct it, and M.
TEST(DeviceBenchTest, WidthsOfThePrimalFormCorrectTheInverse) {
  for (const DeviceCase& one : rehearsed_cases()) {
    if (one.name != "inverse_covariance/inverse_covariance_gram") continue;
    const DeviceWork work = one.prepare(nullptr);
    const std::int64_t before = emulation::counts.starts;
    work.own(nullptr);
    EXPECT_EQ(emulation::counts.starts - before, 5);
  }
}

TEST(DeviceBenchTest, CasesHaveCountsAndDistinctNames) {
  std::set<std::string> seen;
  for (const DeviceCase& one : device_cases({})) {
    EXPECT_TRUE(seen.insert(one.identity()).second) << one.identity();
    EXPECT_GT(one.least.operations + one.least.bytes, 0.0) << one.name;
    EXPECT_EQ(one.name.find(','), std::string::npos) << one.name;
  }
  EXPECT_GT(seen.size(), 60U);
}

// p = 13,700: a pass forward and one back over 20,000 documents, two operations a parameter each.
TEST(DeviceBenchTest, AStepsOperationsMatchItsProducts) {
  int wide = 0;
  for (const DeviceCase& one : device_cases({})) {
    if (one.identity() == "training/step n=10000 N=1 m=100 d=136") {
      EXPECT_EQ(one.least.operations, 4.0 * 20'000 * 13'700);
      EXPECT_EQ(one.wanted.share, 0.7);
      EXPECT_EQ(one.wanted.ratio, 2.0);
    }
    if (one.identity() == "training/step n=10000 N=1 m=512 d=136") {
      EXPECT_EQ(one.least.operations, 4.0 * 20'000 * (512 * 136 + 512));
      ++wide;
    }
    if (one.identity() == "inverse_factor/apply_factor n=10000 V=125") {
      EXPECT_EQ(one.least.operations, 1e4 * (1e4 + 1.0) * 125.0);
    }
  }
  EXPECT_EQ(wide, 1);
}

DeviceRow step_row(std::int64_t n, std::int64_t members, double seconds) {
  DeviceRow row;
  row.measurement.name = "training/step";
  row.measurement.device = "cuda";
  row.measurement.parameters = {{"n", n}, {"N", members}};
  row.measurement.seconds = {seconds, seconds, seconds, 9};
  row.measurement.ceiling = "gemm float";
  row.measurement.ceiling_value = 5e13;
  row.measurement.share = 0.5;
  return row;
}

TEST(DeviceBenchTest, TimesOfMembersAreRelativeToOne) {
  std::vector<DeviceRow> rows{step_row(10'000, 1, 1.0), step_row(10'000, 10, 7.0), step_row(100, 10, 7.0),
                              step_row(100, 1, 2.0), step_row(1000, 10, 1.0)};
  check_member_targets(rows);
  EXPECT_TRUE(rows[0].verdicts.empty());
  ASSERT_EQ(rows[1].verdicts.size(), 1U);
  EXPECT_EQ(rows[1].verdicts[0].measured, 7.0);
  EXPECT_TRUE(rows[1].verdicts[0].ok());
  ASSERT_EQ(rows[2].verdicts.size(), 1U);
  EXPECT_EQ(rows[2].verdicts[0].measured, 3.5);
  EXPECT_FALSE(rows[2].verdicts[0].ok());
  EXPECT_TRUE(rows[4].verdicts.empty());  // nothing to compare with
}

TEST(DeviceBenchTest, WritesTheFormatOfOlrankBench) {
  std::vector<DeviceRow> rows{step_row(100, 1, 2.0)};
  rows[0].libtorch = {5.0, 4.0, 6.0, 9};
  rows[0].verdicts.push_back({"times LibTorch", 2.5, 2.0, false});
  const PeakRates rates{4e12, 5e13, 4e14, 6e13};
  const PeakRates later{3e12, 5e13, 4e14, 6e13};
  const auto json = nlohmann::json::parse(device_json("device_bench", {"a card", rates, later}, rows));
  EXPECT_EQ(json["machine"]["gpu"], "a card");
  EXPECT_EQ(json["ceilings"]["gemm float"], 5e13);
  EXPECT_EQ(json["ceilings"]["gemm tf32"], 4e14);
  EXPECT_EQ(json["ceilings"]["gemm double"], 6e13);
  EXPECT_EQ(json["ceilings_at_end"]["copy"], 3e12);
  const auto& one = json["measurements"][0];
  EXPECT_EQ(one["device"], "cuda");
  EXPECT_EQ(one["seconds"]["median"], 2.0);
  EXPECT_EQ(one["ceiling"]["name"], "gemm float");
  EXPECT_EQ(one["libtorch"]["ratio"], 2.5);
  EXPECT_EQ(one["targets"][0]["ok"], true);
  EXPECT_TRUE(contains(device_table(rows), "OK"));
}

TEST(DeviceBenchTest, NanMissesEveryTarget) {
  EXPECT_FALSE((Verdict{"share", std::nan(""), 0.7, false}).ok());
  EXPECT_FALSE((Verdict{"ratio", std::nan(""), 0.7, true}).ok());
}

}  // namespace
}  // namespace olrank
