#include "core/device/visible_gpus.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

TEST(VisibleGpusTest, ExplainsWhyThereAreNone) {
  const GpuSurvey survey = visible_gpus();
  EXPECT_EQ(survey.gpus.empty(), !survey.absence.empty());
#if defined(OLRANK_WITH_CUDA)
  EXPECT_TRUE(survey.built_with_cuda);
  EXPECT_EQ(survey.runtime_version / 1000, 13);
  EXPECT_FALSE(survey.libraries.empty());
  for (const DeviceLibrary& library : survey.libraries)
    EXPECT_EQ(library.version, library.built_with) << library.name;
#else
  EXPECT_FALSE(survey.built_with_cuda);
  EXPECT_EQ(survey.runtime_version, 0);
  EXPECT_TRUE(survey.libraries.empty());
#endif
}

TEST(VisibleGpusTest, DescribesEachGpu) {
  const GpuSurvey survey = visible_gpus();
  for (std::size_t i = 0; i < survey.gpus.size(); ++i) {
    const GpuDescription& gpu = survey.gpus[i];
    EXPECT_EQ(gpu.index, static_cast<int>(i));
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_GT(gpu.multiprocessors, 0);
    EXPECT_GT(gpu.total_bytes, 0);
    EXPECT_EQ(gpu.free_bytes, 0) << "asking takes a context, and so memory";
    EXPECT_LE(free_bytes_of(gpu), gpu.total_bytes);
  }
}

}  // namespace
}  // namespace olrank
