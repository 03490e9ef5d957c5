#include "bench/device/ceilings.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "bench/device/bench_device.h"
#include "bench/device/bench_tensors.h"
#include "core/error.h"

namespace olrank {
namespace {

constexpr std::int64_t kSmallCopy = std::int64_t{1} << 27;  // beyond every cache
constexpr double kWarmUpSeconds = 0.5;

/// How large the work is that a device shows its rates with.
struct CeilingSizes {
  std::int64_t copy = std::int64_t{1} << 31;
  std::int64_t side_float = 8192;
  std::int64_t side_double = 6144;
  double warm_up = kWarmUpSeconds;

  static CeilingSizes of(const DeviceSizes& sizes) {
    if (sizes.on_gpu) return {};
    return {std::int64_t{1} << 20, 64, 64, 0.0};
  }
};

double copy_rate(const DeviceSizes& sizes, std::int64_t bytes) {
  const at::Tensor from = at::zeros({bytes}, options_of(sizes, at::kByte));
  const at::Tensor to = at::empty_like(from);
  return 2.0 * real(bytes) / device_seconds([&] { to.copy_(from); }).min;
}

double gemm_rate(const DeviceSizes& sizes, at::ScalarType type, std::int64_t side, double warm_up) {
  const at::TensorOptions options = options_of(sizes, type);
  const at::Tensor a = at::randn({side, side}, options);
  const at::Tensor b = at::randn({side, side}, options);
  at::Tensor c = at::empty_like(a);
  const auto multiply = [&] { at::mm_out(c, a, b); };
  const auto start = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (spent() < warm_up) {
    multiply();
    c[0][0].item<double>();  // waits
  }
  const double n = real(side);
  return 2.0 * n * n * n / device_seconds(multiply).min;
}

}  // namespace

DeviceCeilings DeviceCeilings::measured(const DeviceSizes& sizes) {
  if (at::globalContext().allowTF32CuBLAS())
    throw Error("TF32 is enabled in LibTorch, so float32 products cannot be measured.");
  const CeilingSizes size = CeilingSizes::of(sizes);
  DeviceCeilings ceilings(sizes);
  ceilings.rates_.gemm_float = gemm_rate(sizes, at::kFloat, size.side_float, size.warm_up);
  ceilings.rates_.gemm_double = gemm_rate(sizes, at::kDouble, size.side_double, 0.0);
  ceilings.rates_.copy = copy_rate(sizes, size.copy);
  return ceilings;
}

double DeviceCeilings::copy_of(double bytes) {
  const auto half = static_cast<std::int64_t>(0.5 * bytes);
  if (half >= kSmallCopy) return rates_.copy;
  const auto size = std::bit_ceil(static_cast<unsigned long long>(std::max<std::int64_t>(half, 4096)));
  const auto [place, is_new] = small_copies_.try_emplace(static_cast<long long>(size), 0.0);
  if (is_new) place->second = std::max(rates_.copy, copy_rate(sizes_, static_cast<std::int64_t>(size)));
  return place->second;
}

DeviceCeilings::Binding DeviceCeilings::binding(const DeviceCase& work) {
  const LeastWork& least = work.least;
  Binding products = least.arithmetic == Arithmetic::kFloat ? Binding{"gemm float", rates_.gemm_float}
                                                            : Binding{"gemm double", rates_.gemm_double};
  products.least_time = least.operations / products.value;
  const double copy = copy_of(least.bytes);
  const double by_bytes = least.bytes / copy;
  if (products.least_time >= by_bytes) return products;
  return {"copy", copy, by_bytes};
}

}  // namespace olrank
