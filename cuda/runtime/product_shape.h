#pragma once

#include <compare>
#include <cstdint>

#include "cuda/runtime/stream.h"

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
StoredSides sides_of_a(const ProductShape& shape);
StoredSides sides_of_b(const ProductShape& shape);

/// Bytes, at most 16, that the addresses of all rows are multiples of.
std::int64_t alignment_of(const MatrixPlaces& places, std::int64_t number_bytes);
std::int64_t bias_alignment_of(const ProductShape& shape, std::int64_t number_bytes);

/// The product whose algorithm serves this one: a single product with sides rounded up to the next of at
/// most eight sizes per power of two, of matrices that lie compactly and are aligned likewise.
ProductShape bucket_of(const ProductShape& shape, std::int64_t number_bytes);

/// Throws std::logic_error for negative sides, an empty sum, or rows that overlap.
void check_product(const ProductShape& shape);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
