#include "cuda/runtime/product_shape.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kBestAlignment = 16;  // bytes; no instruction moves more

std::int64_t alignment(std::int64_t distances, std::int64_t number_bytes) {
  const std::int64_t bits = distances | (kBestAlignment / number_bytes);
  return (bits & -bits) * number_bytes;
}

std::int64_t rounded_side(std::int64_t n) {
  constexpr std::int64_t kExact = 16;
  if (n <= kExact) return n;
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n - 1)));
  return parts_of(n, below / 8) * (below / 8);
}

MatrixPlaces compact(const MatrixPlaces& places, std::int64_t columns, std::int64_t number_bytes) {
  const std::int64_t aligned = alignment_of(places, number_bytes);
  const std::int64_t misfit = aligned < kBestAlignment ? aligned / number_bytes : 0;
  const std::int64_t numbers = kBestAlignment / number_bytes;
  return {misfit, parts_of(columns, numbers) * numbers + misfit, 0};
}

void check_matrix(const MatrixPlaces& places, const StoredSides& sides) {
  if (places.offset < 0 || places.step < 0 || places.stride < sides.columns)
    throw std::logic_error("The rows of a matrix to multiply overlap, or lie before its array.");
}

}  // namespace

StoredSides sides_of_a(const ProductShape& shape) {
  return shape.transposes_a ? StoredSides{shape.inner, shape.rows} : StoredSides{shape.rows, shape.inner};
}

StoredSides sides_of_b(const ProductShape& shape) {
  return shape.transposes_b ? StoredSides{shape.columns, shape.inner}
                            : StoredSides{shape.inner, shape.columns};
}

std::int64_t alignment_of(const MatrixPlaces& places, std::int64_t number_bytes) {
  return alignment(places.offset | places.stride | places.step, number_bytes);
}

std::int64_t bias_alignment_of(const ProductShape& shape, std::int64_t number_bytes) {
  return alignment(shape.bias | shape.b.step, number_bytes);
}

ProductShape bucket_of(const ProductShape& shape, std::int64_t number_bytes) {
  ProductShape bucket = shape;
  bucket.batch = 1;
  bucket.rows = rounded_side(shape.rows);
  bucket.columns = rounded_side(shape.columns);
  bucket.inner = rounded_side(shape.inner);
  bucket.a = compact(shape.a, sides_of_a(bucket).columns, number_bytes);
  bucket.b = compact(shape.b, sides_of_b(bucket).columns, number_bytes);
  bucket.c = compact(shape.c, bucket.columns, number_bytes);
  if (shape.bias >= 0) {
    const std::int64_t aligned = bias_alignment_of(shape, number_bytes);
    bucket.bias = aligned < kBestAlignment ? aligned / number_bytes : 0;
  }
  return bucket;
}

void check_product(const ProductShape& shape) {
  if (std::min({shape.rows, shape.columns, shape.batch}) < 0 || shape.inner <= 0)
    throw std::logic_error("A product has a negative side, or sums over nothing.");
  check_matrix(shape.a, sides_of_a(shape));
  check_matrix(shape.b, sides_of_b(shape));
  check_matrix(shape.c, {shape.rows, shape.columns});
  if (shape.batch > 1 && shape.c.step == 0)
    throw std::logic_error("Products of a batch have one place for their results.");
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
