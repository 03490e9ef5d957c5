#include "tests/cuda/emulation/emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/cuda/emulation/device_language.h"

namespace olrank::emulation {
namespace {

/// Reverses each block's part of `in` through shared memory.
void reverse_blocks(bool with_barrier, const std::vector<float>& in, std::vector<float>& out,
                    unsigned threads) {
  const auto blocks = static_cast<unsigned>(in.size()) / threads;
  run_grid({blocks}, {threads}, threads * sizeof(float), [&] {
    auto* shared = static_cast<float*>(shared_memory());
    const unsigned first = blockIdx.x * blockDim.x;
    shared[threadIdx.x] = in[first + threadIdx.x];
    if (with_barrier) __syncthreads();
    out[first + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
  });
}

class EmulatorTest : public testing::TestWithParam<Schedule> {
 protected:
  void SetUp() override { machine.schedule = GetParam(); }
};

TEST_P(EmulatorTest, DetectsAMissingBarrier) {
  std::vector<float> in(256);
  std::iota(in.begin(), in.end(), 0.0F);
  std::vector<float> out(in.size());
  for (const bool with_barrier : {true, false}) {
    reverse_blocks(with_barrier, in, out, 64);
    int wrong = 0;
    for (std::size_t i = 0; i < in.size(); ++i) wrong += out[i] == in[i / 64 * 64 + 63 - i % 64] ? 0 : 1;
    EXPECT_EQ(wrong == 0, with_barrier);
  }
}

// Warps that shuffle constantly still run as far ahead of each other as barriers allow.
int wrong_turns(bool second_barrier) {
  constexpr unsigned kThreads = 64;
  int wrong = 0;
  run_grid({1}, {kThreads}, kThreads * sizeof(float), [&] {
    auto* shared = static_cast<float*>(shared_memory());
    for (int turn = 0; turn < 4; ++turn) {
      shared[threadIdx.x] = static_cast<float>(turn);
      __syncthreads();
      const float seen = shared[(threadIdx.x + 32) % kThreads];
      if (__shfl_xor_sync(0xFFFFFFFFU, seen, 1) != static_cast<float>(turn)) ++wrong;
      if (second_barrier) __syncthreads();
    }
  });
  return wrong;
}

TEST_P(EmulatorTest, DetectsAWarpThatRunsAhead) {
  EXPECT_EQ(wrong_turns(true), 0);
  if (GetParam() != Schedule::kRandom) {
    EXPECT_GT(wrong_turns(false), 0);
  }
}

bool refuses(const auto& run, unsigned blocks, unsigned threads, const std::function<void()>& thread) {
  try {
    run({blocks}, {threads}, 0, thread);
  } catch (const std::logic_error&) {
    return true;
  }
  return false;
}

/// Half of a warp waits for the block, the other half for the warp.
void wait_for_different() {
  threadIdx.x < 16 ? __syncthreads() : __syncwarp();
}

TEST_P(EmulatorTest, DetectsDeadlock) {
  EXPECT_TRUE(refuses(run_grid, 1, 32, wait_for_different));
  EXPECT_TRUE(refuses(run_grid, 1, 32, [] { __syncwarp(threadIdx.x < 16 ? 0xFFFFU : 0xFFFFFFFFU); }));
  EXPECT_TRUE(refuses(run_grid, 1, 33, [] {}));
}

/// Every block adds what all blocks wrote in the turn before; the sums double the number of blocks each
/// turn.
std::vector<std::int64_t> sums_of_turns(unsigned blocks, unsigned threads, bool first_barrier,
                                        bool second_barrier) {
  constexpr int kTurns = 3;
  std::vector<std::int64_t> numbers(blocks, 1);
  run_grid_together({blocks}, {threads}, 8, [&] {
    for (int turn = 0; turn < kTurns; ++turn) {
      std::int64_t sum = 0;
      for (const std::int64_t number : numbers) sum += number;
      if (first_barrier) grid_barrier();
      if (threadIdx.x == 0) numbers[blockIdx.x] = sum;
      if (second_barrier) grid_barrier();
    }
  });
  return numbers;
}

TEST_P(EmulatorTest, DetectsAMissingBarrierOfTheGrid) {
  machine.blocks_at_once = 4;
  EXPECT_EQ(sums_of_turns(4, 64, true, true), std::vector<std::int64_t>(4, 64));
  EXPECT_NE(sums_of_turns(4, 64, false, true), std::vector<std::int64_t>(4, 64));
  EXPECT_NE(sums_of_turns(4, 64, true, false), std::vector<std::int64_t>(4, 64));
}

TEST_P(EmulatorTest, DetectsGridsThatWaitForever) {
  machine.blocks_at_once = 3;
  const auto of_a_block = [] { blockIdx.x != 1 ? grid_barrier() : void(); };
  const auto of_a_thread = [] { threadIdx.x != 1 ? grid_barrier() : void(); };
  EXPECT_TRUE(refuses(run_grid_together, 3, 32, of_a_block));
  EXPECT_TRUE(refuses(run_grid_together, 3, 32, of_a_thread));
  EXPECT_TRUE(refuses(run_grid_together, 2, 32, [] {
    blockIdx.x == 0 ? grid_barrier() : threadIdx.x == 0 ? __syncthreads() : __syncwarp();
  }));
  EXPECT_TRUE(refuses(run_grid, 2, 32, [] { grid_barrier(); }));
  EXPECT_TRUE(refuses(run_grid_together, 4, 32, [] {}));
  EXPECT_FALSE(refuses(run_grid_together, 3, 32, [] { grid_barrier(); }));
}

INSTANTIATE_TEST_SUITE_P(Schedules, EmulatorTest, testing::ValuesIn(kSchedules));

}  // namespace
}  // namespace olrank::emulation
