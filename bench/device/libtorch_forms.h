#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <type_traits>
#include <vector>

#include "bench/device/device_case.h"
#include "core/explore/certain_orders.h"
#include "core/ops/relu_network.h"
#include "cuda/ops/tangent_factors.h"

// Operands of measured operations. They are tensors, so that LibTorch's calls and our kernels work on the
// same memory and the same stream.
namespace olrank {

namespace device = OLRANK_DEVICE_NAMESPACE;

constexpr double kFloatBytes = sizeof(float);
constexpr double kDoubleBytes = sizeof(double);
constexpr double kIndexBytes = sizeof(std::int32_t);
constexpr std::int64_t kRoundPairs = 5;  // per round, from a list of ten
constexpr std::int64_t kProbes = 7;      // of a drift check

at::TensorOptions options_of(const DeviceSizes& sizes, at::ScalarType type);

/// A tensor that kernels take as a pointer.
template <class T>
struct Array {
  at::Tensor t;
  operator T*() const { return static_cast<T*>(t.data_ptr()); }
};

/// Makes the operands of a case.
struct Operands {
  DeviceSizes sizes;

  template <class T>
  static constexpr at::ScalarType kType = std::is_same_v<T, float>                  ? at::kFloat
                                          : std::is_same_v<T, double>               ? at::kDouble
                                          : std::is_integral_v<T> && sizeof(T) == 8 ? at::kLong
                                          : std::is_same_v<T, std::int32_t>         ? at::kInt
                                                                                    : at::kByte;
  template <class T>
  at::TensorOptions options() const {
    return options_of(sizes, kType<T>);
  }
  template <class T>
  Array<T> empty(const std::vector<std::int64_t>& extents) const {
    return {at::empty(extents, options<T>())};
  }
  template <class T>
  Array<T> full(const std::vector<std::int64_t>& extents, double value) const {
    return {at::full(extents, value, options<T>())};
  }
  template <class T>
  Array<T> rand(const std::vector<std::int64_t>& extents) const {
    return {at::rand(extents, options<T>())};
  }
  template <class T>
  Array<T> randn(const std::vector<std::int64_t>& extents) const {
    return {at::randn(extents, options<T>())};
  }
  /// Plain structs are kept as bytes.
  template <class T>
  Array<T> these(const std::vector<T>& values) const {
    const bool plain = kType<T> == at::kByte;
    const auto count = static_cast<std::int64_t>(values.size() * (plain ? sizeof(T) : 1));
    return {
        at::from_blob(const_cast<T*>(values.data()), {count}, kType<T>).clone().to(options<T>().device())};
  }
};

/// Largest difference of two tensors relative to the largest number of the second; NaN if either has one.
double disagreement_of(const at::Tensor& found, const at::Tensor& expected);

/// Work without a form in LibTorch calls.
inline DeviceWork alone(std::function<void(Stream)> own) {
  return {.own = std::move(own)};
}
/// Work with a LibTorch form, whose result `differs` compares with that of `own`.
DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const std::function<double(const at::Tensor&)>& differs, double tolerance);
/// Work whose result is the tensor.
DeviceWork compared(const std::function<void(Stream)>& own, const std::function<at::Tensor()>& form,
                    const at::Tensor& result, double tolerance);

/// Documents under N random networks, with their tangent factors.
struct MadeDocs {
  NetworkShape shape;
  std::int64_t members = 1;
  std::int64_t docs = 0;
  Array<float> theta;       // [members × p]
  Array<float> features;    // [docs × d], in [0, 1)
  Array<float> rows;        // [members × docs × factors]
  Array<float> scores;      // [members × docs]
  Array<float> magnitudes;  // likewise

  MadeDocs(const DeviceSizes& sizes, Stream stream, std::int64_t count, std::int64_t networks = 1);

  device::NetworkStack stack() const { return {.shape = shape, .theta = theta, .members = members}; }
  /// Made at their first use in a stream.
  device::Products& products(Stream stream) {
    return products_.try_emplace(stream, plans_, stream).first->second;
  }
  device::FactorRows view() const { return {rows, docs, shape.factors()}; }
  device::ScoreArrays out() const { return {scores, magnitudes}; }
  at::Tensor first_rows() const { return rows.t.select(0, 0); }

 private:
  device::ProductPlans plans_;
  std::map<Stream, device::Products> products_;
};

inline std::shared_ptr<MadeDocs> make_docs(const DeviceSizes& sizes, Stream stream, std::int64_t docs,
                                           std::int64_t members = 1) {
  return std::make_shared<MadeDocs>(sizes, stream, docs, members);
}

/// Bytes of the factors of documents.
inline double rows_bytes(const NetworkShape& shape, double docs) {
  return kFloatBytes * docs * real(shape.factors());
}

}  // namespace olrank

// The operations of the cuda folder in LibTorch calls, without kernels of our own: on the device of the
// tensors, without autograd. Rows are tangent factors, [docs × factors].
namespace olrank::libtorch {

struct Factors {
  at::Tensor rows;    // [members × docs × factors]
  at::Tensor scores;  // [members × docs]
};
Factors tangent_factors(const NetworkShape& shape, const at::Tensor& theta, const at::Tensor& features);

/// Σ_k root[k]² g_ik g_jk.
at::Tensor diagonal_gram(const NetworkShape& shape, const at::Tensor& rows, const at::Tensor& root);

/// scale · g(x_i)·g(x_j), and for pairs, rows 2s and 2s + 1, scale · g_s·g(x_j).
at::Tensor doc_kernel(const NetworkShape& shape, const at::Tensor& rows, double scale);
at::Tensor pair_doc_kernel(const NetworkShape& shape, const at::Tensor& pairs, const at::Tensor& docs,
                           double scale);

/// (K_VV − sᵀs)/λ.
at::Tensor dual_gram(const at::Tensor& kernel, const at::Tensor& s, double lambda);

/// scale · G A⁻¹ Gᵀ, where A⁻¹ = inverse − qᵀq.
at::Tensor inverse_gram(const NetworkShape& shape, const at::Tensor& rows, const at::Tensor& inverse,
                        const at::Tensor& q, double scale);

/// Certain orders by place, from a full M.
at::Tensor certain_by_width(const at::Tensor& m, const at::Tensor& scores, const at::Tensor& magnitudes,
                            const CertaintyRule& rule);

/// One step of gradient descent on the pair loss, for N networks side by side.
struct TrainingStep {
  NetworkShape shape;
  at::Tensor features;
  at::Tensor first;  // documents of terms as 64-bit numbers, like the next one
  at::Tensor second;
  at::Tensor weights;  // float32, like the next one
  at::Tensor labels;
  at::Tensor centre;  // [members × p]
  double prior_weight = 0.0;

  /// [members × p].
  at::Tensor gradient(const at::Tensor& theta) const;
  void take(const at::Tensor& theta, double step) const { theta.add_(gradient(theta), -step); }
};

}  // namespace olrank::libtorch
