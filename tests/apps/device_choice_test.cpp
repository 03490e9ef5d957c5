#include "apps/device_choice.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

GpuSurvey one_gpu() {
  GpuSurvey survey;
  survey.built_with_cuda = true;
  survey.least_capability = 90;
  survey.gpus = {{.index = 0, .name = "Test card", .capability_major = 9, .capability_minor = 0}};
  return survey;
}

Configuration with(const std::string& device, std::initializer_list<RankerKind> kinds) {
  Configuration configuration;
  configuration.run.device = device;
  for (const RankerKind kind : kinds) {
    configuration.rankers.push_back(RankerSettings::defaults(kind, ProtocolName::kPaper));
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
  const DeviceChoice choice = choose_device(configuration, one_gpu());
  EXPECT_EQ(choice.name(), "cuda:0");
  EXPECT_FALSE(choice.takes(configuration.rankers[0]));
  EXPECT_TRUE(choice.takes(configuration.rankers[1]));
  for (const char* device : {"auto", "cpu"}) {
    const DeviceChoice on_cpu = choose_device(with(device, {RankerKind::kOlRankNet}), one_gpu());
    EXPECT_EQ(on_cpu.name(), "cpu");
    EXPECT_FALSE(on_cpu.takes(configuration.rankers[1]));
  }
}

TEST(DeviceChoiceTest, PrecisionOfAGpuIsRefusedOnTheCpu) {
  Configuration configuration = with("cpu", {RankerKind::kOlRankNet});
  configuration.rankers[0].trainer.precision = Precision::kTf32;
  EXPECT_EQ(device_refusal(configuration, one_gpu()),
            "Ranker 'olranknet' asks for precision = \"tf32\", which is for training on a GPU, and it is "
            "computed on the CPU: leave it at \"float32\", or use --device cuda.");
  configuration.run.device = "cuda";
  EXPECT_EQ(device_refusal(configuration, one_gpu()), kNoError);
  Configuration both = with("cuda", {RankerKind::kOlRankNet, RankerKind::kPdgd});
  both.rankers[1].trainer.precision = Precision::kTf32;
  EXPECT_EQ(device_refusal(both, one_gpu()),
            "Ranker 'pdgd' asks for precision = \"tf32\", which is for training on a GPU, and it is "
            "computed on the CPU: leave it at \"float32\".");
}

TEST(DeviceChoiceTest, WhatCannotBeHadIsOneSentence) {
  const Configuration neural = with("cuda:7", {RankerKind::kOlRankNet});
  EXPECT_EQ(device_refusal(neural, one_gpu()),
            "--device cuda:7: The driver shows 1 GPU, counted from cuda:0.");
  GpuSurvey survey;
  EXPECT_NE(device_refusal(neural, survey).find("built without CUDA"), std::string::npos);
  survey.built_with_cuda = true;
  survey.absence = "the driver serves CUDA 12.2, and this build needs 13.0: update the driver";
  EXPECT_EQ(device_refusal(neural, survey),
            "--device cuda:7: No GPU: the driver serves CUDA 12.2, and this build needs 13.0: update the "
            "driver. Use --device cpu.");
  survey = one_gpu();
  survey.gpus[0].capability_major = 7;
  survey.gpus[0].capability_minor = 5;
  EXPECT_EQ(device_refusal(with("cuda", {RankerKind::kOlRankNet}), survey),
            "--device cuda: The kernels of this build need compute capability 9.0, and Test card has 7.5: "
            "configure with -DCMAKE_CUDA_ARCHITECTURES=75, or use --device cpu.");
  EXPECT_EQ(device_refusal(with("cuda", {RankerKind::kPairRank}), one_gpu()),
            "--device cuda: No ranker here can be computed on a GPU: of 'pairrank', a 'pairrank' has no "
            "device implementation. Use --device cpu.");
}

}  // namespace
}  // namespace olrank
