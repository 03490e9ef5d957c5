#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device/visible_gpus.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/product_shape.h"
#include "cuda/runtime/stream.h"

// Products of dense matrices by cuBLASLt. The tests have a twin of the implementation on the CPU's BLAS.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The algorithms of products on one device. An algorithm is chosen once per shape of bucket_of(), for a
/// single product, and serves every batch of it. Sums are split in double alone, where their parts are
/// added in order. A number's bits are therefore the same in a batch as alone, and depend on nothing but
/// the shape, the card and the library's version. Not thread-safe.
class ProductPlans {
 public:
  /// The plans are for the calling thread's device.
  ProductPlans();
  ~ProductPlans();
  ProductPlans(const ProductPlans&) = delete;
  ProductPlans& operator=(const ProductPlans&) = delete;

 private:
  friend class Products;
  struct State;
  std::unique_ptr<State> state_;
};

/// Multiplies in one stream, with a workspace of its own.
class Products {
 public:
  /// The plans must outlive this object.
  Products(ProductPlans& plans, Stream stream);

  Stream stream() const { return stream_; }
  /// All arrays are on the device, and C overlaps neither A nor B. The first product of a shape plans it,
  /// which is an error while the stream is being recorded.
  void multiply(const ProductShape& shape, const float* a, const float* b, float* c,
                ProductScales scales = {});
  void multiply(const ProductShape& shape, const double* a, const double* b, double* c,
                ProductScales scales = {});
  std::int64_t bytes() const { return workspace_.size(); }

 private:
  ProductPlans* plans_;
  Stream stream_;
  DeviceArray<std::byte> workspace_;
};

/// A matrix in double, as a product reads it.
struct PlacedOperand {
  const double* values;
  std::int64_t stride;
  bool transposed = false;
};

/// c [rows × columns] ← alpha · op(a) op(b) + beta · c.
inline void multiply_placed(Products& products, std::int64_t rows, std::int64_t columns, std::int64_t inner,
                            const PlacedOperand& a, const PlacedOperand& b, double* c, std::int64_t stride,
                            ProductScales scales = {}) {
  if (rows == 0 || columns == 0 || inner == 0) return;
  ProductShape shape;
  shape.rows = rows;
  shape.columns = columns;
  shape.inner = inner;
  shape.transposes_a = a.transposed;
  shape.transposes_b = b.transposed;
  shape.a = {0, a.stride, 0};
  shape.b = {0, b.stride, 0};
  shape.c = {0, stride, 0};
  products.multiply(shape, a.values, b.values, c, scales);
}

/// cuBLASLt.
DeviceLibrary product_library();

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
