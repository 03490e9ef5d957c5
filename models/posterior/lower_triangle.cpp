#include "models/posterior/lower_triangle.h"

#include <algorithm>
#include <span>
#include <vector>

namespace olrank {
namespace {

/// Rows start on cache lines.
constexpr std::int64_t kStrideStep = 128;

std::int64_t stride_of(std::int64_t size) {
  return (size + kStrideStep - 1) / kStrideStep * kStrideStep;
}

}  // namespace

LowerTriangle::LowerTriangle(std::int64_t size)
    : values_(std::make_shared<AlignedVector<double>>(
          static_cast<std::size_t>(stride_of(size) * stride_of(size)), 0.0)),
      size_(size),
      stride_(stride_of(size)) {}

std::int64_t LowerTriangle::bytes() const {
  return stride_of(size_) * stride_of(size_) * static_cast<std::int64_t>(sizeof(double));
}

void LowerTriangle::grow(std::int64_t size) {
  if (size > stride_) *this = extended(size);
  size_ = size;
}

LowerTriangle LowerTriangle::extended(std::int64_t size) const {
  LowerTriangle larger(size);
  for (std::int64_t i = 0; i < size_; ++i) std::copy_n(row(i), i + 1, larger.row(i));
  return larger;
}

void LowerTriangle::save(StateWriter& state, std::string_view name) const {
  std::vector<double> packed;
  packed.reserve(size_ * (size_ + 1) / 2);
  for (std::int64_t i = 0; i < size_; ++i) packed.insert(packed.end(), row(i), row(i) + i + 1);
  state.put(name, packed);
}

void LowerTriangle::load(StateReader& state, std::string_view name, std::int64_t size) {
  const std::vector<double> packed = state.get<double>(name);
  if (std::ssize(packed) != size * (size + 1) / 2)
    state.fail("A matrix of the covariance does not have the size of its dictionary.");
  *this = LowerTriangle(size);
  const double* next = packed.data();
  for (std::int64_t i = 0; i < size; ++i, next += i) std::copy_n(next, i + 1, row(i));
}

}  // namespace olrank
