#include "tests/cuda/emulation/emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/cuda/emulation/device_language.h"

namespace olrank::emulation {
namespace {

constexpr Schedule kSchedules[] = {Schedule::kForward, Schedule::kBackward, Schedule::kRandom};

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
  void SetUp() override { set_schedule(GetParam()); }
};

TEST_P(EmulatorTest, ThreadsSynchroniseAtBarriers) {
  std::vector<float> in(256);
  std::iota(in.begin(), in.end(), 0.0F);
  std::vector<float> out(in.size());
  reverse_blocks(true, in, out, 64);
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(out[i], in[i / 64 * 64 + 63 - i % 64]) << i;
}

TEST_P(EmulatorTest, DetectsAMissingBarrier) {
  std::vector<float> in(256);
  std::iota(in.begin(), in.end(), 0.0F);
  std::vector<float> out(in.size());
  reverse_blocks(false, in, out, 64);
  int wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) wrong += out[i] == in[i / 64 * 64 + 63 - i % 64] ? 0 : 1;
  EXPECT_GT(wrong, 0);
}

// A running sum through shared memory in place: without the second barrier, threads overwrite values
// that others have yet to read.
int wrong_sums(bool second_barrier) {
  constexpr unsigned kThreads = 64;
  std::vector<float> out(kThreads);
  run_grid({1}, {kThreads}, kThreads * sizeof(float), [&] {
    auto* shared = static_cast<float*>(shared_memory());
    const unsigned i = threadIdx.x;
    shared[i] = 1.0F;
    __syncthreads();
    for (unsigned step = 1; step < kThreads; step *= 2) {
      const float sum = shared[i] + (i >= step ? shared[i - step] : 0.0F);
      if (second_barrier) __syncthreads();
      shared[i] = sum;
      __syncthreads();
    }
    out[i] = shared[i];
  });
  int wrong = 0;
  for (unsigned i = 0; i < kThreads; ++i) wrong += out[i] == static_cast<float>(i + 1) ? 0 : 1;
  return wrong;
}

TEST_P(EmulatorTest, DetectsAnOverwriteBeforeAllHaveRead) {
  EXPECT_EQ(wrong_sums(true), 0);
  // This race is harmless from the last thread to the first; the other orders find it.
  if (GetParam() != Schedule::kBackward) {
    EXPECT_GT(wrong_sums(false), 0);
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

TEST_P(EmulatorTest, SharedMemoryIsPoisonedBeforeEachBlock) {
  std::vector<float> found(2);
  std::vector<double> found_double(2);
  run_grid({2}, {32}, 64, [&] {
    if (threadIdx.x != 0) return;
    auto* shared = static_cast<float*>(shared_memory());
    found[blockIdx.x] = shared[3];
    found_double[blockIdx.x] = static_cast<double*>(shared_memory())[0];
    std::fill_n(shared, 16, 1.0F);
  });
  for (const float value : found) EXPECT_TRUE(std::isnan(value));
  for (const double value : found_double) EXPECT_TRUE(std::isnan(value));
}

TEST_P(EmulatorTest, WarpsShuffleAndVote) {
  std::vector<double> sums(96);
  std::vector<std::uint32_t> ballots(96);
  std::vector<int> shifted(96);
  run_grid({1}, {96}, 0, [&] {
    const unsigned i = threadIdx.x;
    double sum = static_cast<double>(i);
    for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, bits);
    sums[i] = sum;
    ballots[i] = __ballot_sync(0xFFFFFFFFU, i % 3 == 0);
    shifted[i] = __shfl_down_sync(0xFFFFFFFFU, static_cast<int>(i), 5);
  });
  for (unsigned i = 0; i < 96; ++i) {
    EXPECT_EQ(sums[i], 32.0 * (i / 32 * 32) + 496.0);
    for (unsigned lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(ballots[i] >> lane & 1U, (i / 32 * 32 + lane) % 3 == 0 ? 1U : 0U);
    }
    EXPECT_EQ(shifted[i], static_cast<int>(i % 32 < 27 ? i + 5 : i));
  }
}

TEST_P(EmulatorTest, AsyncCopiesHappenWhenAwaited) {
  const std::vector<float> in = {1.0F, 2.0F};
  float early = 0.0F;
  float first = 0.0F;
  float second = 0.0F;
  run_grid({1}, {32}, 64, [&] {
    if (threadIdx.x != 0) return;
    auto* shared = static_cast<float*>(shared_memory());
    copy_later(shared, &in[0], sizeof(float));
    end_copy_group();
    copy_later(shared + 1, &in[1], sizeof(float));
    end_copy_group();
    early = shared[0];
    wait_for_copy_groups(1);
    first = shared[0];
    second = shared[1];
  });
  EXPECT_TRUE(std::isnan(early));
  EXPECT_EQ(first, 1.0F);
  EXPECT_TRUE(std::isnan(second));
}

TEST_P(EmulatorTest, RejectsUnalignedCopies) {
  alignas(16) const float in[8] = {};
  const auto copy = [&](std::size_t to, std::size_t from) {
    run_grid({1}, {32}, 64, [&] {
      copy_later(static_cast<float*>(shared_memory()) + to, in + from, 4 * sizeof(float));
      end_copy_group();
      wait_for_copy_groups(0);
    });
  };
  EXPECT_NO_THROW(copy(4, 4));
  EXPECT_THROW(copy(2, 4), std::logic_error);
  EXPECT_THROW(copy(4, 1), std::logic_error);
}

TEST_P(EmulatorTest, FinishedThreadsDoNotBlockOthers) {
  int after = 0;
  run_grid({3}, {64}, 0, [&] {
    if (threadIdx.x >= 40) return;
    __syncthreads();
    ++after;
  });
  EXPECT_EQ(after, 120);
}

TEST_P(EmulatorTest, DetectsDeadlock) {
  EXPECT_THROW(run_grid({1}, {32}, 0,
                        [] {
                          if (threadIdx.x < 16) {
                            __syncthreads();
                          } else {
                            __syncwarp();
                          }
                        }),
               std::logic_error);
  EXPECT_THROW(run_grid({1}, {32}, 0, [] { __syncwarp(threadIdx.x < 16 ? 0xFFFFU : 0xFFFFFFFFU); }),
               std::logic_error);
  EXPECT_THROW(run_grid({1}, {33}, 0, [] {}), std::logic_error);
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

TEST_P(EmulatorTest, BlocksOfACooperativeGridWaitForEachOther) {
  set_blocks_at_once(4);
  EXPECT_EQ(sums_of_turns(4, 64, true, true), std::vector<std::int64_t>(4, 64));
  EXPECT_EQ(sums_of_turns(1, 64, true, true), std::vector<std::int64_t>(1, 1));
}

TEST_P(EmulatorTest, DetectsAMissingBarrierOfTheGrid) {
  set_blocks_at_once(4);
  EXPECT_NE(sums_of_turns(4, 64, false, true), std::vector<std::int64_t>(4, 64));
  EXPECT_NE(sums_of_turns(4, 64, true, false), std::vector<std::int64_t>(4, 64));
}

TEST_P(EmulatorTest, DetectsGridsThatWaitForever) {
  set_blocks_at_once(3);
  EXPECT_THROW(run_grid_together({3}, {32}, 0,
                                 [] {
                                   if (blockIdx.x != 1) grid_barrier();
                                 }),
               std::logic_error);
  EXPECT_THROW(run_grid_together({3}, {32}, 0,
                                 [] {
                                   if (threadIdx.x != 1) grid_barrier();
                                 }),
               std::logic_error);
  EXPECT_THROW(run_grid_together({2}, {32}, 0,
                                 [] {
                                   if (blockIdx.x == 0) {
                                     grid_barrier();
                                   } else if (threadIdx.x == 0) {
                                     __syncthreads();
                                   } else {
                                     __syncwarp();
                                   }
                                 }),
               std::logic_error);
  EXPECT_THROW(run_grid({2}, {32}, 0, [] { grid_barrier(); }), std::logic_error);
  EXPECT_THROW(run_grid_together({4}, {32}, 0, [] {}), std::logic_error);
  EXPECT_NO_THROW(run_grid_together({3}, {32}, 0, [] { grid_barrier(); }));
}

TEST_P(EmulatorTest, BlocksThatRunTogetherHaveTheirOwnSharedMemory) {
  set_blocks_at_once(3);
  std::vector<float> found(3);
  int poisoned = 0;
  run_grid_together({3}, {32}, 64, [&] {
    auto* shared = static_cast<float*>(shared_memory());
    if (threadIdx.x == 0 && std::isnan(shared[0])) ++poisoned;
    __syncthreads();
    if (threadIdx.x == 0) shared[0] = static_cast<float>(blockIdx.x);
    grid_barrier();
    if (threadIdx.x == 31) found[blockIdx.x] = shared[0];
  });
  EXPECT_EQ(found, (std::vector<float>{0.0F, 1.0F, 2.0F}));
  EXPECT_EQ(poisoned, 3);
}

INSTANTIATE_TEST_SUITE_P(Schedules, EmulatorTest, testing::ValuesIn(kSchedules));

}  // namespace
}  // namespace olrank::emulation
