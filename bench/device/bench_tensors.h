#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "bench/device/device_case.h"
#include "cuda/ops/relu_layers.h"

// Inputs of measured operations. They are tensors, so that LibTorch's calls and our kernels work on the
// same memory and the same stream.
namespace olrank {

namespace device = OLRANK_DEVICE_NAMESPACE;

at::TensorOptions options_of(const DeviceSizes& sizes, at::ScalarType type);
at::Tensor empty_tensor(const DeviceSizes& sizes, at::ScalarType type,
                        const std::vector<std::int64_t>& extents);

/// Plain structs or numbers, as bytes.
template <class T>
at::Tensor uploaded(const DeviceSizes& sizes, const std::vector<T>& values) {
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  at::Tensor there = empty_tensor(sizes, at::kByte, {bytes});
  if (bytes > 0) there.copy_(at::from_blob(const_cast<T*>(values.data()), {bytes}, at::kByte));
  return there;
}

template <class T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

/// Largest difference of two tensors relative to the largest number of the second; NaN if either has one.
double disagreement_of(const at::Tensor& found, const at::Tensor& expected);

/// Work without a form in LibTorch calls.
DeviceWork alone(std::function<void(Stream)> own);
/// Work with a LibTorch form. `differs` compares the result of `form` with that of `own`.
DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const std::function<double(const at::Tensor&)>& differs, double tolerance);

/// Documents under N random networks, with their tangent factors.
struct MadeDocs {
  NetworkShape shape;
  std::int64_t members = 1;
  std::int64_t docs = 0;
  at::Tensor theta;       // [members × p]
  at::Tensor features;    // [docs × d], in [0, 1)
  at::Tensor rows;        // [members × docs × factors]
  at::Tensor scores;      // [members × docs]
  at::Tensor magnitudes;  // likewise

  device::NetworkStack stack(device::Multiplier multiplier = device::Multiplier::kChosen) const {
    return {shape, data<float>(theta), members, 0, multiplier};
  }
  /// Made at their first use in a stream.
  device::Products& products(Stream stream) {
    return products_.try_emplace(stream, plans_, stream).first->second;
  }
  device::FactorRows view() const { return {data<float>(rows), docs, shape.factors()}; }
  device::ScoreArrays out() const { return {data<float>(scores), data<float>(magnitudes)}; }

 private:
  device::ProductPlans plans_;
  std::map<Stream, device::Products> products_;
};
std::shared_ptr<MadeDocs> make_docs(const DeviceSizes& sizes, Stream stream, std::int64_t docs,
                                    std::int64_t members = 1);

constexpr std::int64_t kRoundPairs = 5;  // per round, from a list of ten

inline double real(std::int64_t count) {
  return static_cast<double>(count);
}
constexpr double kFloatBytes = sizeof(float);
constexpr double kDoubleBytes = sizeof(double);

inline NetworkShape shape_of(const DeviceSizes& sizes) {
  return ntk_shape(sizes.features, sizes.width, sizes.depth);
}

}  // namespace olrank
