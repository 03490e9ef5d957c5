#include "models/modules/module_model.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <thread>

namespace olrank {
namespace {

TEST(LibtorchRuntimeTest, IsTheVersionThatTheBuildFound) {
  EXPECT_EQ(describe_libtorch().version, OLRANK_FOUND_LIBTORCH);
  EXPECT_FALSE(describe_libtorch().cpu_capability.empty());
}

TEST(LibtorchRuntimeTest, HasItsCudaPartInACudaBuild) {
#if defined(OLRANK_WITH_CUDA)
  EXPECT_TRUE(describe_libtorch().cuda);
#else
  EXPECT_FALSE(describe_libtorch().cuda);
#endif
}

TEST(LibtorchRuntimeTest, UsesOneThreadOnAnyThread) {
  use_one_libtorch_thread();
  EXPECT_EQ(at::get_num_threads(), 1);
  int elsewhere = 0;
  std::thread([&elsewhere] {
    use_one_libtorch_thread();
    elsewhere = at::get_num_threads();
  }).join();
  EXPECT_EQ(elsewhere, 1);
}

}  // namespace
}  // namespace olrank
