#include "models/posterior/inducing_covariance.h"

#include <algorithm>
#include <vector>

#include "core/ops/inverse_factor.h"
#include "core/ops/tangent_factors.h"

namespace olrank {
namespace {

/// Columns of a triangular solve on one thread.
constexpr std::int64_t kColumnsPerSolve = 5 * blas::kFastColumns;

/// Rows start on cache lines.
constexpr std::int64_t kStrideStep = 128;

std::int64_t stride_of(std::int64_t size) {
  return (size + kStrideStep - 1) / kStrideStep * kStrideStep;
}

}  // namespace

std::int64_t InducingDictionary::bytes() const {
  return factors_.bytes() + c_.bytes();
}

void InducingDictionary::find_kernel(ExecutionContext& context, TangentFactors docs, double* kernel) const {
  pair_doc_kernel(context, shape_, factors(), docs, scale_, kernel, docs.docs);
}

void InducingDictionary::find_pair_kernel(ExecutionContext& context, TangentFactors pairs,
                                          double* kernel) const {
  pair_kernel(context, shape_, factors(), pairs, scale_, kernel, pairs.docs / 2);
}

void InducingDictionary::project(ExecutionContext& context, std::int64_t columns, double* x,
                                 blas::Transpose transpose) const {
  context.for_blocks(columns, kColumnsPerSolve, [&](std::int64_t begin, std::int64_t end, int) {
    blas::solve_lower(transpose, members(), end - begin, c_.data(), c_.stride(), x + begin, columns);
  });
}

void InducingDictionary::divide(std::int64_t rows, std::int64_t columns, double* f) const {
  blas::solve_lower(blas::Transpose::kYes, rows, columns, c_.data(), c_.stride(), f, columns);
}

Admission InducingDictionary::add(const DictionaryPolicy& policy, TangentFactors docs,
                                  std::span<const PreferencePair> pairs,
                                  std::span<const double> coordinates, std::int64_t stride,
                                  std::span<const double> magnitudes, std::span<double> residual) {
  const std::int64_t before = members();
  Admission admission = policy.admit(before, magnitudes, residual);
  const auto entered = std::ssize(admission.entered);
  c_.grow(before + entered);
  std::vector<PreferencePair> added;
  for (std::int64_t e = 0; e < entered; ++e) {
    const std::int64_t pair = admission.entered[e];
    added.push_back(pairs[pair]);
    double* row = c_.row(before + e);
    for (std::int64_t i = 0; i < before; ++i) row[i] = coordinates[i * stride + pair];
    std::copy_n(admission.coordinates.data() + pair * entered, e + 1, row + before);
  }
  factors_.append(docs, added);
  return admission;
}

Admission InducingDictionary::add(ExecutionContext& context, const DictionaryPolicy& policy,
                                  TangentFactors pairs) {
  const std::int64_t count = pairs.docs / 2;
  std::vector<PreferencePair> all(count);
  std::vector<double> magnitudes(count);
  for (std::int64_t i = 0; i < count; ++i) {
    all[i] = {static_cast<std::int32_t>(2 * i), static_cast<std::int32_t>(2 * i + 1)};
    for (const std::int32_t doc : {all[i].winner, all[i].loser})
      magnitudes[i] += scale_ * gradient_length_sq(shape_, pairs.row(shape_, doc));
  }
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto coordinates = scratch.take<double>(members() * count);
  const auto residual = scratch.take<double>(count * count);
  find_pair_kernel(context, pairs, coordinates.data());
  project(context, count, coordinates.data());
  pair_kernel(context, shape_, pairs, pairs, scale_, residual.data(), count);
  subtract_gram(context, members(), count, coordinates.data(), count, residual.data(), count);
  mirror_lower(count, residual.data());
  return add(policy, pairs, all, coordinates, count, magnitudes, residual);
}

void InducingDictionary::save(StateWriter& state) const {
  factors_.save(state);
  c_.save(state, "dictionary_factor");
}

void InducingDictionary::load(StateReader& state) {
  factors_.load(state);
  c_.load(state, "dictionary_factor", members());
}

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
