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
  EXPECT_EQ(
      device_refusal(configuration, one_gpu()),
      "Ranker 'olranknet' has precision = \"tf32\", which needs a GPU, but it is computed on the CPU: use "
      "precision = \"float32\" or --device cuda.");
  configuration.run.device = "cuda";
  EXPECT_EQ(device_refusal(configuration, one_gpu()), kNoError);
  Configuration both = with("cuda", {RankerKind::kOlRankNet, RankerKind::kPdgd});
  both.rankers[1].trainer.precision = Precision::kTf32;
  EXPECT_EQ(device_refusal(both, one_gpu()),
            "Ranker 'pdgd' has precision = \"tf32\", which needs a GPU, but it is computed on the CPU: use "
            "precision = \"float32\".");
}

TEST(DeviceChoiceTest, ALibraryOfAnotherVersionIsRefused) {
  const Configuration neural = with("cuda", {RankerKind::kOlRankNet});
  GpuSurvey survey = one_gpu();
  survey.libraries = {{"cuBLASLt", "13.1.0", "13.1.0"}};
  EXPECT_EQ(device_refusal(neural, survey), kNoError);
  survey.libraries.push_back({"cuSOLVER", "12.1.0", "12.0.4"});
  EXPECT_EQ(device_refusal(neural, survey),
            "--device cuda: The loaded cuSOLVER is version 12.1.0, but this program was built with 12.0.4: "
            "use the CUDA libraries that belong to its LibTorch, or build it again.");
  EXPECT_EQ(device_refusal(with("cpu", {RankerKind::kOlRankNet}), survey), kNoError);
}

TEST(DeviceChoiceTest, ExplainsWhyAGpuIsNotAvailable) {
  const Configuration neural = with("cuda:7", {RankerKind::kOlRankNet});
  EXPECT_EQ(device_refusal(neural, one_gpu()),
            "--device cuda:7: The driver reports 1 GPU, numbered from cuda:0.");
  GpuSurvey survey;
  EXPECT_NE(device_refusal(neural, survey).find("built without CUDA"), std::string::npos);
  survey.built_with_cuda = true;
  survey.absence = "the driver supports CUDA 12.2, but this build needs 13.0: update the driver";
  EXPECT_EQ(device_refusal(neural, survey),
            "--device cuda:7: There is no GPU: the driver supports CUDA 12.2, but this build needs 13.0: "
            "update the "
            "driver. Use --device cpu.");
  survey = one_gpu();
  survey.gpus[0].capability_major = 7;
  survey.gpus[0].capability_minor = 5;
  EXPECT_EQ(device_refusal(with("cuda", {RankerKind::kOlRankNet}), survey),
            "--device cuda: The kernels of this build need compute capability 9.0, but Test card has 7.5: "
            "configure with -DCMAKE_CUDA_ARCHITECTURES=75, or use --device cpu.");
  EXPECT_EQ(device_refusal(with("cuda", {RankerKind::kPairRank}), one_gpu()),
            "--device cuda: No ranker of this configuration can run on a GPU: 'pairrank' cannot, as "
            "'pairrank' has no device implementation. Use --device cpu.");
}

}  // namespace
}  // namespace olrank
