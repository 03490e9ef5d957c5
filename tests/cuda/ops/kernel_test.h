#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/runtime/device_array.h"
#include "cuda/runtime/products.h"
#include "tests/core/ops/network_fixture.h"
#if defined(OLRANK_KERNELS_EMULATED)
#include "tests/cuda/emulation/device_work.h"
#else
#include "core/device/visible_gpus.h"
#endif

// One body a test, in two programs: kernels on a GPU, and the same source on the CPU under three orders of
// its threads. The CPU operation, or an obvious formula, is the reference in both.
namespace olrank {

namespace device = OLRANK_DEVICE_NAMESPACE;

/// An array on the device, which kernels take as an argument.
template <class T>
struct DeviceArray : device::DeviceArray<T> {
  using device::DeviceArray<T>::DeviceArray;
  explicit DeviceArray(const std::vector<T>& values) : device::DeviceArray<T>(std::span<const T>(values)) {}
  operator T*() const { return const_cast<T*>(this->data()); }
};

/// Numbers on the host; kernels take a copy of them, which is made when the first one is called.
template <class T>
class Given : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  Given(std::vector<T> values) : std::vector<T>(std::move(values)) {}
  decltype(auto) operator[](std::integral auto i) { return std::vector<T>::operator[](i); }
  decltype(auto) operator[](std::integral auto i) const { return std::vector<T>::operator[](i); }
  T* there() const {
    if (there_.size() == 0) there_ = DeviceArray<T>(*this);
    return there_;
  }
  operator T*() const { return there(); }

 private:
  mutable DeviceArray<T> there_;
};

#if defined(OLRANK_KERNELS_EMULATED)

class KernelTest : public testing::TestWithParam<emulation::Schedule> {
 protected:
  void SetUp() override {
    emulation::forget_everything();
    emulation::machine.schedule = GetParam();
  }
};

// A sanitizer of addresses, under which fibers are slow, finds most where work is done late.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr emulation::Schedule kSchedules[] = {emulation::Schedule::kBackward};
#else
using emulation::kSchedules;
#endif

#define OLRANK_KERNEL_TESTS(name) INSTANTIATE_TEST_SUITE_P(Emulated, name, testing::ValuesIn(kSchedules))

/// For what no order of threads changes.
inline bool is_first_order(emulation::Schedule order) {
  return order == kSchedules[0];
}

#else

class KernelTest : public testing::TestWithParam<int> {
 protected:
  /// No GPU is a normal state: the test says why and skips, unless OLRANK_REQUIRE_GPU=1 makes that a
  /// failure.
  void SetUp() override {
    const std::string absence = visible_gpus().absence;
    if (absence.empty()) return;
    const char* required = std::getenv("OLRANK_REQUIRE_GPU");
    if (required != nullptr && std::string_view(required) == "1")
      FAIL() << "OLRANK_REQUIRE_GPU=1, but " << absence;
    GTEST_SKIP() << "no GPU: " << absence;
  }
};

#define OLRANK_KERNEL_TESTS(name) INSTANTIATE_TEST_SUITE_P(OnDevice, name, testing::Values(0))

inline bool is_first_order(int /*order*/) {
  return true;
}

#endif

/// A suite that needs nothing more.
#define OLRANK_KERNEL_TEST_SUITE(name) \
  class name : public KernelTest {};   \
  OLRANK_KERNEL_TESTS(name)

/// Products in the default stream.
struct DefaultProducts {
  device::ProductPlans plans;
  device::Products products{plans, nullptr};
};

template <class T>
DeviceArray<T> on_device(const std::vector<T>& values) {
  return DeviceArray<T>(values);
}

/// For an output that has places which nothing reads and no kernel writes: copies of unwritten memory to
/// the host are errors to sanitizers. NaN, or −1.
template <class T>
DeviceArray<T> unset_on_device(std::int64_t size) {
  constexpr T kUnset = std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN() : T(-1);
  return on_device(std::vector<T>(static_cast<std::size_t>(size), kUnset));
}

/// |a − b| ≤ absolute + relative · |b| for every number; false for NaN.
template <class Found, class Expected>
testing::AssertionResult all_near(const Found& a, const Expected& b, double absolute, double relative) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " against " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= absolute + relative * std::abs(static_cast<double>(b[i])))) {
      return testing::AssertionFailure() << "number " << i << " is " << a[i] << ", not " << b[i];
    }
  }
  return testing::AssertionSuccess();
}

template <class T>
double largest_of(const std::vector<T>& values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// The networks of a stack, one after another.
inline std::vector<float> stacked_theta(const NetworkShape& shape, std::int64_t members,
                                        std::uint64_t seed) {
  std::vector<float> theta;
  for (std::int64_t member = 0; member < members; ++member) {
    const std::vector<float> one = random_theta(shape, seed + static_cast<std::uint64_t>(100 * member));
    theta.insert(theta.end(), one.begin(), one.end());
  }
  return theta;
}

/// Documents by score, best first; ties by index.
inline std::vector<std::int32_t> slow_order(const std::vector<float>& scores) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
  return order;
}

template <class T>
std::vector<T> part_of(const std::vector<T>& values, std::int64_t first, std::int64_t count) {
  return {values.begin() + first, values.begin() + first + count};
}

}  // namespace olrank
