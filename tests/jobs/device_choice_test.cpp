#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/online/online_ranker.h"
#include "jobs/device_choice.h"
#include "jobs/saved_trial.h"
#include "tests/jobs/settings/configuration_text.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000;

GpuSurvey survey_of(int count = 1) {
  GpuSurvey survey;
  survey.built_with_cuda = true;
  survey.least_capability = 90;
  for (int index = 0; index < count; ++index) {
    survey.gpus.push_back({.index = index,
                           .name = "Test card",
                           .capability_major = 9,
                           .capability_minor = 0,
                           .multiprocessors = 132,
                           .free_bytes = 8 * kGigabyte});
  }
  return survey;
}

Configuration with(const std::string& device,
                   std::initializer_list<RankerKind> kinds = {RankerKind::kOlRankNet}) {
  Configuration configuration;
  configuration.run.device = device;
  for (const RankerKind kind : kinds) {
    configuration.rankers.push_back(RankerSettings::defaults(kind, ProtocolName::kRecommended));
    configuration.rankers.back().name = std::string(name_of(kind));
  }
  return configuration;
}

std::string device_refusal(const Configuration& configuration, const GpuSurvey& survey) {
  return message_of([&] {
    try {
      choose_device(configuration, survey);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kWrongUsage);
      throw;
    }
  });
}

TEST(DeviceChoiceTest, OnlyRankersWithADeviceImplementationGoThere) {
  const Configuration configuration = with("cuda", {RankerKind::kPairRank, RankerKind::kOlRankNet});
  const DeviceChoice choice = choose_device(configuration, survey_of());
  EXPECT_EQ(choice.name(), "cuda:0");
  EXPECT_FALSE(choice.takes(configuration.rankers[0]));
  EXPECT_TRUE(choice.takes(configuration.rankers[1]));
  for (const char* device : {"auto", "cpu"}) {
    const DeviceChoice on_cpu = choose_device(with(device), survey_of());
    EXPECT_EQ(on_cpu.name(), "cpu");
    EXPECT_FALSE(on_cpu.takes(configuration.rankers[1]));
  }
}

TEST(DeviceChoiceTest, ALibraryOfAnotherVersionIsRefused) {
  const Configuration neural = with("cuda");
  GpuSurvey survey = survey_of();
  survey.libraries = {{"cuBLASLt", "13.1.0", "13.1.0"}};
  EXPECT_EQ(device_refusal(neural, survey), kNoError);
  survey.libraries.push_back({"cuSOLVER", "12.1.0", "12.0.4"});
  EXPECT_EQ(device_refusal(neural, survey),
            "--device cuda: The loaded cuSOLVER is version 12.1.0, but this program was built with 12.0.4: "
            "use the CUDA libraries that belong to its LibTorch, or build it again.");
  EXPECT_EQ(why_no_gpu(survey), device_refusal(neural, survey)) << "what olrank info says";
  EXPECT_EQ(why_no_gpu(survey_of()), std::nullopt);
  EXPECT_EQ(device_refusal(with("cpu"), survey), kNoError);
}

/// Returns a survey of so many of the usual cards, as `change` leaves it.
GpuSurvey changed(int count, const std::function<void(GpuSurvey&)>& change) {
  GpuSurvey survey = survey_of(count);
  change(survey);
  return survey;
}

TEST(DeviceChoiceTest, ExplainsWhyAGpuIsNotAvailable) {
  const std::string absence = "the driver supports CUDA 12.2, but this build needs 13.0: update the driver";
  const GpuSurvey other = changed(4, [](GpuSurvey& survey) { survey.gpus[2].name = "Other card"; });
  const struct {
    std::string device;
    GpuSurvey survey;
    std::string refusal;
  } rows[] = {
      {"cuda:7", survey_of(), ": There is no cuda:7: the driver reports 1 GPU, numbered from cuda:0."},
      {"cuda:0-3", survey_of(2), ": There is no cuda:2: the driver reports 2 GPUs, numbered from cuda:0."},
      {"cuda:1,9", survey_of(2), ": There is no cuda:9: the driver reports 2 GPUs, numbered from cuda:0."},
      {"cuda:0-1", survey_of(2), ""},
      {"cuda:7",
       {},
       " requires a GPU, but this olrank was built without CUDA. Build it with OLRANK_CUDA=ON, or use "
       "--device cpu."},
      {"cuda:7", changed(0, [&](GpuSurvey& survey) { survey.absence = absence; }),
       ": There is no GPU: " + absence + ". Use --device cpu."},
      {"cuda",
       changed(1,
               [](GpuSurvey& survey) {
                 survey.gpus[0].capability_major = 7;
                 survey.gpus[0].capability_minor = 5;
               }),
       ": The kernels of this build need compute capability 9.0, but Test card has 7.5: configure with "
       "-DCMAKE_CUDA_ARCHITECTURES=75, or use --device cpu."},
      {"cuda:all", changed(2, [](GpuSurvey& survey) { survey.gpus[1].capability_major = 7; }),
       ": The kernels of this build need compute capability 9.0, but Test card has 7.0: configure with "
       "-DCMAKE_CUDA_ARCHITECTURES=70, or use --device cpu."},
      // Results have the same bits on one type of GPU only.
      {"cuda:all", other,
       ": cuda:0 (Test card, 132 multiprocessors) and cuda:2 (Other card, 132 multiprocessors) differ, and "
       "results have the same bits on one type of GPU only: use GPUs of one type, such as --device "
       "cuda:0-1,3."},
      {"cuda:0-1,3", other, ""},
      {"cuda:all", changed(2, [](GpuSurvey& survey) { survey.gpus[1].multiprocessors = 114; }),
       ": cuda:0 (Test card, 132 multiprocessors) and cuda:1 (Test card, 114 multiprocessors) differ, and "
       "results have the same bits on one type of GPU only: use GPUs of one type, such as --device "
       "cuda:0."},
      {"cuda:all", changed(2, [](GpuSurvey& survey) { survey.gpus[1].capability_minor = 1; }),
       ": cuda:0 (Test card, 132 multiprocessors) and cuda:1 (Test card, 132 multiprocessors) differ, and "
       "results have the same bits on one type of GPU only: use GPUs of one type, such as --device "
       "cuda:0."},
  };
  for (const auto& [device, survey, refusal] : rows)
    EXPECT_EQ(device_refusal(with(device), survey),
              refusal.empty() ? kNoError : "--device " + device + refusal);
  EXPECT_EQ(device_refusal(with("cuda", {RankerKind::kPairRank}), survey_of()),
            "--device cuda: No ranker of this configuration can run on a GPU: 'pairrank' cannot, as "
            "'pairrank' has no device implementation. Use --device cpu.");
}

TEST(DeviceChoiceTest, SeveralGpusInOneExperiment) {
  const auto chosen = [](const std::string& device, int count) {
    return choose_device(with(device), survey_of(count));
  };
  EXPECT_EQ(chosen("cuda:all", 4).name(), "cuda:0-3");
  EXPECT_EQ(chosen("cuda:all", 1).name(), "cuda:0");
  EXPECT_EQ(chosen("cuda:3,0-1", 4).name(), "cuda:0-1,3");
  EXPECT_EQ(chosen("cuda:3,1", 4).name(), "cuda:1,3");
}

NetworkTrials trials_of_network(std::int64_t rounds, std::int64_t parameters, std::int64_t members = 1) {
  return {.trials = 1, .rounds = rounds, .parameters = parameters, .members = members};
}

TEST(FasterDeviceTest, TimesAreThoseOfTheRecords) {
  // An H100's trials of 1,000 and 5,000 rounds took 0.80 s and 7.46 s after 0.99 s, and ten members 2.5
  // times.
  const NetworkTrials thousand = trials_of_network(1000, 13'700);
  EXPECT_NEAR(times_of({&thousand, 1}, 1).gpu, 0.99 + 0.80, 1e-9);
  EXPECT_NEAR(times_of({&thousand, 1}, 1).cpu, 18.0, 1e-9);
  const NetworkTrials long_one = trials_of_network(5000, 13'700);
  EXPECT_NEAR(times_of({&long_one, 1}, 1).gpu, 0.99 + 7.46, 1e-9);
  const NetworkTrials ten = trials_of_network(1000, 13'700, 10);
  EXPECT_NEAR(times_of({&ten, 1}, 1).gpu, 0.99 + 2.5 * 0.80, 1e-9);
  EXPECT_NEAR(times_of({&ten, 1}, 1).cpu, 180.0, 1e-9);
  // A pass over MSLR-WEB30K's documents took 57.4 ms there.
  EXPECT_NEAR(times_of_training(2'265'901, 13'700, 100, 16).gpu - 0.99, 5.74, 0.01);
}

TEST(FasterDeviceTest, AGpuPaysForAllButSmallAndShortTrialsAndManyJobs) {
  const struct {
    NetworkTrials work;
    std::int64_t jobs;
    bool pays;
    const char* what;
  } rows[] = {{trials_of_network(1000, 13'700), 1, true, "a usual trial"},
              {trials_of_network(5000, 752), 1, true, "16 units over 46 features"},
              {trials_of_network(100, 13'700, 10), 1, true, "an ensemble"},
              {trials_of_network(100, 13'700), 1, false, "the start of a program takes longer"},
              {trials_of_network(1000, 752), 1, false, "a small network"},
              {trials_of_network(1, 1), 1, false, "nearly nothing"},
              {{1, 1000, 752, 1, true}, 1, false, "by growth"},
              {{1, 1000, 13'700, 1, true}, 1, true, "by growth"},
              {{64, 1000, 4'700, 1, false}, 1, true, "one after the other"},
              {{64, 1000, 4'700, 1, false}, 64, false, "a core for each trial"},
              {{1, 1000, 4'700, 1, false}, 64, true, "one trial has one core"}};
  for (const auto& [work, jobs, pays, what] : rows)
    EXPECT_EQ(times_of({&work, 1}, jobs).gpu_is_faster(), pays) << what;
}

TEST(FasterDeviceTest, TrainingPaysFromASizeOn) {
  EXPECT_TRUE(times_of_training(2'265'901, 13'700, 50, 16).gpu_is_faster());
  EXPECT_FALSE(times_of_training(9'630, 4'700, 100, 2).gpu_is_faster());
  EXPECT_FALSE(times_of_training(2'265'901, 136, 1, 16).gpu_is_faster()) << "a linear model";
}

TEST(FasterDeviceTest, SaysWhichDeviceAndWhy) {
  const DeviceTimes fast{.cpu = 450.0, .gpu = 8.4};
  DeviceAdvice advice = faster_device(fast, survey_of());
  EXPECT_EQ(advice.device, "cuda:0");
  EXPECT_EQ(advice.why, "cuda:0 (Test card) computes this: about 8s on a GPU, 7m30s on the CPU.");
  advice = faster_device({.cpu = 1.0, .gpu = 2.0}, survey_of());
  EXPECT_EQ(advice.device, "auto");
  EXPECT_EQ(advice.why, "The CPU computes this: about 2s on a GPU, 1s on the CPU.");
  GpuSurvey old = survey_of(0);
  old.absence = "the driver supports CUDA 12.2, but this build needs 13.0: update the driver";
  advice = faster_device(fast, old);
  EXPECT_EQ(advice.device, "auto");
  EXPECT_EQ(advice.why, "The CPU computes this, as no GPU can be used: " + old.absence + ".");
  EXPECT_EQ(meaning_of_auto(old), "the CPU, as no GPU can be used");
  GpuSurvey weak = survey_of();
  weak.gpus[0].capability_major = 7;
  EXPECT_EQ(faster_device(fast, weak).device, "auto");
  EXPECT_EQ(meaning_of_auto(survey_of()).find("cuda:0 for networks"), 0U);
}

TEST(GpuSlotsTest, EveryGpuPlaysATrialWhileTrialsLast) {
  Configuration configuration = with("cuda:all", {RankerKind::kOlRankNet, RankerKind::kP2NeurRank});
  configuration.clicks.models = {"perfect", "navigational"};
  configuration.data.folds = {1, 2};
  configuration.protocol.seeds = {1};
  const DeviceChoice four = choose_device(configuration, survey_of(4));
  const auto jobs = [&](std::int64_t asked) {
    configuration.run.jobs = asked;
    return GpuSlots::of(configuration, four).jobs();
  };
  EXPECT_EQ(jobs(1), 4);
  EXPECT_EQ(jobs(6), 6);
  EXPECT_EQ(jobs(100), 8) << "two rankers, two users, two folds";
  configuration.rankers.resize(1);
  configuration.data.folds = {1};
  EXPECT_EQ(jobs(6), 2);
}

TEST(GpuSlotsTest, SlotsTakeTurnsOverGpus) {
  const GpuSurvey survey = survey_of(3);
  for (const std::int64_t jobs : {1, 2, 3, 4, 7, 9}) {
    const GpuSlots slots(survey.gpus, jobs);
    std::vector<std::int64_t> expected(3);
    for (std::int64_t slot = 0; slot < jobs; ++slot) ++expected[slots.gpu_of(slot).index];
    for (std::int64_t place = 0; place < 3; ++place)
      EXPECT_EQ(slots.slots_on(place), expected[place]) << jobs << " jobs, GPU " << place;
    EXPECT_LE(expected[0] - expected[2], 1);
  }
}

TEST(GpuSlotsTest, TrialsShareTheMemoryOfTheirGpuAndItsDocuments) {
  GpuSurvey survey = survey_of(2);
  survey.gpus[1].free_bytes = 6 * kGigabyte;
  const GpuSlots slots(survey.gpus, 4);
  EXPECT_EQ(slots.bytes_on(0, kGigabyte, 1), 7 * kGigabyte / 2);
  EXPECT_EQ(slots.bytes_on(1, kGigabyte, 1), 5 * kGigabyte / 2);
  EXPECT_EQ(slots.tightest(kGigabyte, 1), 1);
  EXPECT_EQ(slots.bytes_on(0, kGigabyte, 5), 3 * kGigabyte) << "two trials may be on two folds";
  EXPECT_EQ(slots.bytes_on(0, 9 * kGigabyte, 1), 0);
  // A GPU with fewer trials has more for each.
  const GpuSlots uneven(survey.gpus, 3);
  EXPECT_EQ(uneven.bytes_on(1, kGigabyte, 5), 5 * kGigabyte);
  EXPECT_EQ(uneven.tightest(kGigabyte, 5), 0);
  // A GPU that no trial uses does not count.
  EXPECT_EQ(GpuSlots(survey.gpus, 1).tightest(kGigabyte, 5), 0);
}

TEST(GpuSlotsTest, TakesAsManyTrialsAsHaveTheMemory) {
  GpuSurvey survey = survey_of(2);
  survey.gpus[1].free_bytes = 2 * kGigabyte;
  const GpuSlots slots(survey.gpus, 4);
  EXPECT_EQ(slots.jobs_with(kGigabyte / 2, kGigabyte / 2, 1), 4);
  EXPECT_EQ(slots.jobs_with(kGigabyte, kGigabyte / 2, 1), 3);
  EXPECT_EQ(slots.jobs_with(3 * kGigabyte, 0, 1), 0);
  EXPECT_EQ(slots.other_gpus_for(3 * kGigabyte, 0), ", as would --device cuda:0");
  EXPECT_EQ(slots.other_gpus_for(9 * kGigabyte, 0), "");
  EXPECT_EQ(slots.other_gpus_for(kGigabyte, 0), "") << "all of them";
  // There are more GPUs than trials.
  EXPECT_EQ(GpuSlots(survey_of(4).gpus, 2).jobs_with(99 * kGigabyte, 0, 1), 0);
}

TEST(StartModelTest, OnlyAClickModelStartsFromAnAdditiveModel) {
  const TemporaryFolder folder;
  const std::string file = (folder / "model.safetensors").string();
  write_file_atomically(file, model_bytes(additive_tensors(std::vector<float>(8)), {}));
  for (const std::string kind : {"ranknet", "pdgd", "olranknet"}) {
    EXPECT_EQ(
        message_of<InvalidArgument>([&] {
          from_text(fmt::format("[[ranker]]\nkind = \"{}\"\nstart_from = \"{}\"\n", kind, file));
        }),
        file +
            " holds an additive model, from which only clickgp starts: choose kind = \"clickgp\", a linear "
            "model or a network.");
  }
  const Configuration configuration =
      from_text(fmt::format("[[ranker]]\nkind = \"clickgp\"\nstart_from = \"{}\"\n", file));
  ASSERT_EQ(configuration.rankers.size(), 1U);
  EXPECT_EQ(configuration.rankers[0].start_from, file);
}

}  // namespace
}  // namespace olrank
