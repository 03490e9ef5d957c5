#include "bench/device/ceilings.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "bench/device/graph_timer.h"
#include "core/error.h"

namespace olrank {
namespace {

constexpr std::int64_t kLargeCopy = std::int64_t{1} << 31;
constexpr std::int64_t kSmallCopy = std::int64_t{1} << 27;  // beyond every cache
constexpr double kWarmUpSeconds = 0.5;

double copy_rate(std::int64_t bytes) {
  const auto options = at::TensorOptions().dtype(at::kByte).device(at::kCUDA);
  const at::Tensor from = at::zeros({bytes}, options);
  const at::Tensor to = at::empty_like(from);
  return 2.0 * static_cast<double>(bytes) / device_seconds([&] { to.copy_(from); }).min;
}

double gemm_rate(at::ScalarType type, std::int64_t side, double warm_up) {
  const auto options = at::TensorOptions().dtype(type).device(at::kCUDA);
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
  const auto n = static_cast<double>(side);
  return 2.0 * n * n * n / device_seconds(multiply).min;
}

}  // namespace

DeviceCeilings DeviceCeilings::measured() {
  if (at::globalContext().allowTF32CuBLAS())
    throw Error("TF32 is enabled in LibTorch, so float32 products cannot be measured.");
  DeviceCeilings ceilings;
  ceilings.gemm_float_ = gemm_rate(at::kFloat, 8192, kWarmUpSeconds);
  at::globalContext().setAllowTF32CuBLAS(true);
  ceilings.gemm_tf32_ = gemm_rate(at::kFloat, 8192, 0.0);
  at::globalContext().setAllowTF32CuBLAS(false);
  ceilings.gemm_double_ = gemm_rate(at::kDouble, 6144, 0.0);
  ceilings.copy_ = copy_rate(kLargeCopy);
  return ceilings;
}

double DeviceCeilings::copy_of(double bytes) {
  const auto half = static_cast<std::int64_t>(0.5 * bytes);
  if (half >= kSmallCopy) return copy_;
  const auto size = std::bit_ceil(static_cast<unsigned long long>(std::max<std::int64_t>(half, 4096)));
  const auto [place, is_new] = small_copies_.try_emplace(static_cast<long long>(size), 0.0);
  if (is_new) place->second = std::max(copy_, copy_rate(static_cast<std::int64_t>(size)));
  return place->second;
}

DeviceCeilings::Binding DeviceCeilings::products_of(Arithmetic arithmetic) const {
  switch (arithmetic) {
    case Arithmetic::kFloat:
      return {"gemm float", gemm_float_};
    case Arithmetic::kTf32:
      return {"gemm tf32", gemm_tf32_};
    case Arithmetic::kDouble:
      break;
  }
  return {"gemm double", gemm_double_};
}

DeviceCeilings::Binding DeviceCeilings::binding(const DeviceCase& work) {
  Binding products = products_of(work.arithmetic);
  products.least_time = work.operations / products.value;
  const double copy = copy_of(work.bytes);
  const double by_bytes = work.bytes / copy;
  if (products.least_time >= by_bytes) return products;
  return {"copy", copy, by_bytes};
}

}  // namespace olrank
