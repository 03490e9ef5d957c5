#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "apps/bench/commands.h"
#include "bench/measurement.h"
#include "bench/measurement_file.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "jobs/covariance/covariance_study.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

StudyBase base() {
  return {RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kRecommended),
          RankerSettings::defaults(RankerKind::kP2NeurRank, ProtocolName::kRecommended)};
}

TEST(StudyRankers, CombineEveryStructureWidthAndDepth) {
  StudySettings study;
  study.structures = {"full", "diagonal", "none", "ensemble-5"};
  study.widths = {4, 8};
  study.depths = {2, 3};
  study.noise_variances = {0.1, 0.01};
  const std::vector<StudyRanker> rankers = study_rankers(study, base());
  ASSERT_EQ(rankers.size(), 2U * 2U * 5U);
  EXPECT_EQ(rankers[0].cell.ranker, "full-m4-L2");
  EXPECT_EQ(rankers[0].settings.posterior.shadow, ShadowCovariance::kNone);
  EXPECT_EQ(rankers[0].cell.alpha, base().network.explore.alpha);
  EXPECT_EQ(rankers[1].settings.posterior.covariance, Covariance::kDiagonal);
  EXPECT_EQ(rankers[1].settings.posterior.shadow, ShadowCovariance::kFull);
  EXPECT_FALSE(rankers[2].cell.alpha.has_value());  // `none` has no widths
  EXPECT_EQ(rankers[4].cell.ranker, "ensemble-5-m4-L2-nu0.01");
  EXPECT_EQ(rankers[4].settings.kind, RankerKind::kP2NeurRank);
  EXPECT_EQ(rankers[4].settings.posterior.members, 5);
  EXPECT_EQ(rankers[4].settings.posterior.noise_variance, 0.01);
  EXPECT_EQ(rankers.back().settings.network.width, 8);
  EXPECT_EQ(rankers.back().settings.network.depth, 3);
  const StudyRanker tried = with_alpha(rankers[1], 0.25);
  EXPECT_EQ(tried.settings.name, "diagonal-m4-L2+alpha=0.25");
  EXPECT_EQ(tried.settings.explore.alpha, 0.25);
}

/// The rankers of these structures, of one width and depth.
std::vector<StudyRanker> rankers_of(std::vector<std::string> structures, const StudyBase& from = base(),
                                    bool exact_training = false) {
  StudySettings study;
  study.structures = std::move(structures);
  study.widths = {4};
  study.depths = {2};
  study.exact_training = exact_training;
  return study_rankers(study, from);
}

TEST(StudyRankers, TakeTheBudgetFromTheNameOfTheStructure) {
  StudyBase of_file = base();
  of_file.network.posterior.budget = 70;
  const std::vector<StudyRanker> rankers = rankers_of({"full", "inducing", "inducing-500"}, of_file);
  ASSERT_EQ(rankers.size(), 3U);
  EXPECT_FALSE(rankers[0].cell.budget.has_value());
  EXPECT_EQ(rankers[1].settings.posterior.budget, 70);
  EXPECT_EQ(rankers[1].cell.budget, 70);
  EXPECT_EQ(rankers[2].cell.ranker, "inducing-500-m4-L2");
  EXPECT_EQ(rankers[2].settings.posterior.covariance, Covariance::kInducing);
  EXPECT_EQ(rankers[2].settings.posterior.budget, 500);
  EXPECT_EQ(rankers[2].settings.posterior.shadow, ShadowCovariance::kFull);
}

TEST(StudyRankers, TrainTheExactOneEveryRoundIfAsked) {
  StudyBase growing = base();
  growing.network.trainer.retrain = Retrain::kGrowth;
  for (const bool exact : {false, true}) {
    const std::vector<StudyRanker> rankers = rankers_of({"full", "diagonal"}, growing, exact);
    EXPECT_EQ(rankers[0].settings.trainer.retrain, exact ? Retrain::kEveryRound : Retrain::kGrowth);
    EXPECT_EQ(rankers[1].settings.trainer.retrain, Retrain::kGrowth);
  }
}

TEST(StudyRankers, RefuseStructuresThatCannotBeCompared) {
  EXPECT_THROW(rankers_of({"diagonal"}), InvalidArgument);
  for (const char* structure : {"diagnal", "ensemble-1", "ensemble-2x", "full", "inducing-", "inducing-0",
                                "inducing-65537", "inducing-5x", "diagonal-5"})
    EXPECT_THROW(rankers_of({"full", structure}), InvalidArgument) << structure;
}

Measurement measurement(double median, double share) {
  Measurement one;
  one.name = "widths/full";
  one.parameters = {{"n", 5000}, {"V", 120}};
  one.seconds = {median, 0.9 * median, 1.2 * median, 9};
  one.operations = 1e9;
  one.ceiling = std::isnan(share) ? "" : "gemm double";
  one.ceiling_value = std::isnan(share) ? share : 1e9 / median / share;
  one.share = share;
  one.least_share = share;
  return one;
}

MeasurementFile file_of(const Measurement& one) {
  return {
      "olrank bench ops", {"a processor", 2, "a library", "a compiler", "0.1", "2026-01-01"}, {one}, {}};
}

TEST(MeasurementFile, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  for (const double share : {0.7, std::nan("")}) {
    const std::string text = measurements_json(file_of(measurement(0.004, share)));
    write_file_atomically(folder.path() / "file.json", text);
    const MeasurementFile read = read_measurements(folder.path() / "file.json");
    EXPECT_EQ(measurements_json(read), text);
  }
  write_file_atomically(folder.path() / "other.json", "{}");
  EXPECT_THROW(read_measurements(folder.path() / "other.json"), IoError);
}

TEST(SlowDowns, AreRelativeToTheCeilingIfAny) {
  // Twice the time on a machine of half the speed gives the same share.
  const auto same = slow_downs(file_of(measurement(0.004, 0.7)), file_of(measurement(0.008, 0.7)));
  ASSERT_EQ(same.size(), 1U);
  EXPECT_DOUBLE_EQ(same[0].ratio, 1.0);
  EXPECT_FALSE(is_slower(same[0], 1.5));
  const auto slower = slow_downs(file_of(measurement(0.004, 0.7)), file_of(measurement(0.004, 0.35)));
  EXPECT_DOUBLE_EQ(slower[0].ratio, 2.0);
  EXPECT_NEAR(slower[0].low, 2.0 * 0.9 / 1.2, 1e-12);
  EXPECT_TRUE(is_slower(slower[0], 1.5));
  // 1.2 times slower, but within both spreads.
  EXPECT_FALSE(
      is_slower(slow_downs(file_of(measurement(1.0, 0.6)), file_of(measurement(1.0, 0.5))).front(), 1.1));
  const auto without =
      slow_downs(file_of(measurement(0.004, std::nan(""))), file_of(measurement(0.012, std::nan(""))));
  EXPECT_DOUBLE_EQ(without[0].ratio, 3.0);
}

TEST(CheckShare, RefusesMoreThanTheCeilingUnlessARepeatIsBelowIt) {
  EXPECT_NO_THROW(check_share(measurement(1.0, 1.05)));
  EXPECT_NO_THROW(check_share(measurement(1.0, std::nan(""))));
  EXPECT_THROW(check_share(measurement(1.0, 1.06)), Error);
  Measurement one = measurement(1.0, 1.3);
  one.least_share = 1.0;
  EXPECT_NO_THROW(check_share(one));
}

/// Fills `bytes` and counts `factor` times as many.
Measurement measured_fill(std::int64_t bytes, double factor) {
  BenchCase work;
  work.name = "fill";
  work.ceiling = CeilingKind::kMemory;
  work.traffic.written = factor * static_cast<double>(bytes);
  work.prepare = [bytes] {
    return [values = std::vector<char>(static_cast<std::size_t>(bytes))]() mutable {
      std::memset(values.data(), values[0] + 1, values.size());
    };
  };
  return measure(work);
}

TEST(CheckShare, RefusesMiscountedBytesOnlyBeyondTheCaches) {
  constexpr std::int64_t kMegabyte = 1024 * 1024;
  EXPECT_THROW(check_share(measured_fill(4 * kMegabyte, 10.0)), Error);
  EXPECT_NO_THROW(check_share(measured_fill(4 * kMegabyte, 0.5)));
  EXPECT_NO_THROW(check_share(measured_fill(kMegabyte / 8, 10.0)));
}

TEST(BenchOpsTest, RequiresDeviceBenchOnAGpu) {
  EXPECT_TRUE(contains(message_of<InvalidArgument>([] { measure_on_gpu(0, ""); }),
                       "device_bench, which does not exist"));
}

}  // namespace
}  // namespace olrank
