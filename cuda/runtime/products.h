#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "core/device/visible_gpus.h"
#include "cuda/runtime/device_array.h"

// Products of dense matrices by cuBLASLt. The tests have a twin of the implementation on the CPU's BLAS.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Where the row-major matrices of a batch lie in their array, in numbers. The array begins at an address
/// that is a multiple of 16 bytes, or a member of a batch does, `step` numbers further.
struct MatrixPlaces {
  std::int64_t offset = 0;  // of the first number
  std::int64_t stride = 0;  // between rows
  std::int64_t step = 0;    // between matrices; 0: one for the whole batch

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes what the default compares with for a pointer
  friend auto operator<=>(const MatrixPlaces&, const MatrixPlaces&) = default;
};

/// C [rows × columns] = op(A) op(B), for a batch of matrices side by side. Members that may be multiplied
/// one by one or together state the same steps in both cases: bits depend on everything here except
/// `batch`.
struct ProductShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  bool transposes_a = false;  // A is [inner × rows], else [rows × inner]
  bool transposes_b = false;  // B is [columns × inner], else [inner × columns]
  MatrixPlaces a;
  MatrixPlaces b;
  MatrixPlaces c;
  std::int64_t bias = -1;  // place in B's array of `columns` numbers to add to each row of C; −1 for none
  bool relu = false;       // of what is then written to C
  std::int64_t batch = 1;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes what the default compares with for a pointer
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

/// C ← alpha · op(A) op(B) + beta · C. C is not read where beta is 0.
struct ProductScales {
  double alpha = 1.0;
  double beta = 0.0;
};

/// Sides of the matrices as they are stored.
struct StoredSides {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

constexpr std::int64_t kBestAlignment = 16;  // bytes; no instruction moves more

inline std::int64_t alignment_of_distances(std::int64_t distances, std::int64_t number_bytes) {
  const std::int64_t bits = distances | (kBestAlignment / number_bytes);
  return (bits & -bits) * number_bytes;
}

inline StoredSides sides_of_a(const ProductShape& shape) {
  return shape.transposes_a ? StoredSides{shape.inner, shape.rows} : StoredSides{shape.rows, shape.inner};
}

inline StoredSides sides_of_b(const ProductShape& shape) {
  return shape.transposes_b ? StoredSides{shape.columns, shape.inner}
                            : StoredSides{shape.inner, shape.columns};
}

/// Bytes, at most 16, that the addresses of all rows are multiples of.
inline std::int64_t alignment_of(const MatrixPlaces& places, std::int64_t number_bytes) {
  return alignment_of_distances(places.offset | places.stride | places.step, number_bytes);
}

inline std::int64_t bias_alignment_of(const ProductShape& shape, std::int64_t number_bytes) {
  return alignment_of_distances(shape.bias | shape.b.step, number_bytes);
}

inline std::int64_t rounded_side(std::int64_t n) {
  constexpr std::int64_t kExact = 16;
  if (n <= kExact) return n;
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n - 1)));
  return parts_of(n, below / 8) * (below / 8);
}

inline MatrixPlaces compact_places(const MatrixPlaces& places, std::int64_t columns,
                                   std::int64_t number_bytes) {
  const std::int64_t aligned = alignment_of(places, number_bytes);
  const std::int64_t misfit = aligned < kBestAlignment ? aligned / number_bytes : 0;
  const std::int64_t numbers = kBestAlignment / number_bytes;
  return {misfit, parts_of(columns, numbers) * numbers + misfit, 0};
}

inline void check_matrix(const MatrixPlaces& places, const StoredSides& sides) {
  if (places.offset < 0 || places.step < 0 || places.stride < sides.columns)
    throw std::logic_error("The rows of a matrix to multiply overlap, or lie before its array.");
}

/// The product whose algorithm serves this one: a single product with sides rounded up to the next of at
/// most eight sizes per power of two, of matrices that lie compactly and are aligned likewise.
inline ProductShape bucket_of(const ProductShape& shape, std::int64_t number_bytes) {
  ProductShape bucket = shape;
  bucket.batch = 1;
  bucket.rows = rounded_side(shape.rows);
  bucket.columns = rounded_side(shape.columns);
  bucket.inner = rounded_side(shape.inner);
  bucket.a = compact_places(shape.a, sides_of_a(bucket).columns, number_bytes);
  bucket.b = compact_places(shape.b, sides_of_b(bucket).columns, number_bytes);
  bucket.c = compact_places(shape.c, bucket.columns, number_bytes);
  if (shape.bias >= 0) {
    const std::int64_t aligned = bias_alignment_of(shape, number_bytes);
    bucket.bias = aligned < kBestAlignment ? aligned / number_bytes : 0;
  }
  return bucket;
}

/// Throws std::logic_error for negative sides, an empty sum, or rows that overlap.
inline void check_product(const ProductShape& shape) {
  if (std::min({shape.rows, shape.columns, shape.batch}) < 0 || shape.inner <= 0)
    throw std::logic_error("A product has a negative side, or sums over nothing.");
  check_matrix(shape.a, sides_of_a(shape));
  check_matrix(shape.b, sides_of_b(shape));
  check_matrix(shape.c, {shape.rows, shape.columns});
  if (shape.batch > 1 && shape.c.step == 0)
    throw std::logic_error("Products of a batch have one place for their results.");
}

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
  products.multiply(
      {rows, columns, inner, a.transposed, b.transposed, {0, a.stride}, {0, b.stride}, {0, stride}},
      a.values, b.values, c, scales);
}

/// cuBLASLt.
DeviceLibrary product_library();

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
