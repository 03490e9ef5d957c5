#include "cuda/engine/inducing_dictionary.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/math/pair_loss.h"
#include "core/ops/blas.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/tangent_kernel.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Column s is row 2s less row 2s + 1.
std::vector<double> pair_differences() {
  std::vector<double> values(2 * kMostPairsPerBatch * kMostPairsPerBatch);
  for (std::int64_t s = 0; s < kMostPairsPerBatch; ++s) {
    values[2 * s * kMostPairsPerBatch + s] = 1.0;
    values[(2 * s + 1) * kMostPairsPerBatch + s] = -1.0;
  }
  return values;
}

/// The residual among pairs, [count × count], and the magnitude of each, from the kernel of their documents
/// (lower triangle) and from zᵀz.
struct Residual {
  std::vector<double> of_pairs;
  std::vector<double> magnitudes;

  Residual(std::int64_t count, std::span<const double> of_docs, std::span<const double> gram)
      : of_pairs(count * count), magnitudes(count) {
    const std::int64_t docs = 2 * count;
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return of_docs[std::max(i, j) * docs + std::min(i, j)];
    };
    for (std::int64_t s = 0; s < count; ++s) {
      magnitudes[s] = at(2 * s, 2 * s) + at(2 * s + 1, 2 * s + 1);
      for (std::int64_t t = 0; t <= s; ++t) {
        const double product = pair_product(at(2 * s, 2 * t), at(2 * s, 2 * t + 1), at(2 * s + 1, 2 * t),
                                            at(2 * s + 1, 2 * t + 1));
        of_pairs[s * count + t] = of_pairs[t * count + s] = product - gram[s * count + t];
      }
    }
  }
};

}  // namespace

void multiply_placed(Products& products, std::int64_t rows, std::int64_t columns, std::int64_t inner,
                     const PlacedOperand& a, const PlacedOperand& b, double* c, std::int64_t stride,
                     ProductScales scales) {
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

InducingDictionary::InducingDictionary(const TangentShape& shape, double scale, std::int64_t budget,
                                       Products& products)
    : shape_(shape),
      scale_(scale),
      budget_(budget),
      products_(&products),
      pairs_(shape),
      inverse_(budget, budget),
      differences_(std::span<const double>(pair_differences())) {}

void InducingDictionary::clear() {
  pairs_.clear();
  inverse_.clear(stream());
}

std::int64_t InducingDictionary::bytes() const {
  return pairs_.bytes() + inverse_.bytes() + of_docs_.bytes() + both_.bytes() + kernel_.bytes() +
         coordinates_.bytes() + solved_.bytes() + product_.bytes() + weights_.bytes() + entered_.bytes() +
         differences_.size() * static_cast<std::int64_t>(sizeof(double));
}

void InducingDictionary::find_kernel(const FactorRows& docs, double* of_docs, double* kernel) {
  query_kernels(stream(), shape_, docs, pairs_.all(), scale_, of_docs, kernel, docs.docs);
  const std::int64_t filled = members() * docs.docs;
  clear_numbers(stream(), kernel + filled, padded_members() * docs.docs - filled);
}

void InducingDictionary::find_pair_kernel(const FactorRows& pairs, double* of_docs) {
  const std::int64_t side = padded_members();
  const std::int64_t count = pairs.docs / 2;
  both_.reserve(stream(), side * pairs.docs);
  kernel_.reserve(stream(), side * count);
  find_kernel(pairs, of_docs, both_.data());
  multiply_placed(*products_, side, count, pairs.docs, {both_.data(), pairs.docs},
                  {differences_.data(), kMostPairsPerBatch}, kernel_.data(), count);
}

void InducingDictionary::find_coordinates(const FactorRows& pairs, double* x, std::int64_t stride) {
  const std::int64_t side = padded_members();
  const std::int64_t all = pairs.docs / 2;
  for (std::int64_t first = 0; first < all; first += kMostPairsPerBatch) {
    const std::int64_t count = std::min(kMostPairsPerBatch, all - first);
    find_pair_kernel({pairs.values + 2 * first * pairs.stride, 2 * count, pairs.stride}, nullptr);
    multiply_placed(*products_, side, count, side, inverse_, {kernel_.data(), count}, x + first, stride);
  }
}

ProjectedPairs InducingDictionary::project_pairs(const FactorRows& pairs) {
  const std::int64_t side = padded_members();
  const std::int64_t count = pairs.docs / 2;
  const std::int64_t room = GrowingMatrix::padded(members() + count) * count;
  of_docs_.reserve(stream(), pairs.docs * pairs.docs);
  coordinates_.reserve(stream(), room);
  solved_.reserve(stream(), count * side);
  product_.reserve(stream(), count * count);
  find_pair_kernel(pairs, of_docs_.data());
  clear_numbers(stream(), coordinates_.data() + side * count, room - side * count);
  multiply_placed(*products_, side, count, side, inverse_, {kernel_.data(), count}, coordinates_.data(),
                  count);
  multiply_placed(*products_, count, side, side, {coordinates_.data(), count, true}, inverse_,
                  solved_.data(), side);
  clear_numbers(stream(), product_.data(), count * count);
  multiply_placed(*products_, count, count, side, {coordinates_.data(), count, true},
                  {coordinates_.data(), count}, product_.data(), count);
  return {pairs, count, members(), kernel_.data(), coordinates_.data(), solved_.data()};
}

AddedPairs InducingDictionary::add(const DictionaryPolicy& policy, const ProjectedPairs& pairs) {
  const std::int64_t count = pairs.count;
  const std::vector<double> of_docs = of_docs_.to_host(stream(), 4 * count * count);
  gram_ = product_.to_host(stream(), count * count);
  Residual found(count, of_docs, gram_);
  AddedPairs added{found.of_pairs, std::move(found.magnitudes), {}, {}, {}};
  added.admission = policy.admit(members(), added.magnitudes, found.of_pairs);
  const auto entered = std::ssize(added.admission.entered);
  added.factor.resize(entered * entered);
  added.inverse.resize(entered * entered);
  for (std::int64_t e = 0; e < entered; ++e) {
    const std::int64_t pair = added.admission.entered[e];
    for (std::int64_t other = 0; other <= e; ++other)
      added.factor[e * entered + other] = added.admission.coordinates[pair * entered + other];
    added.inverse[e * entered + e] = 1.0;
  }
  blas::solve_lower(blas::Transpose::kNo, entered, entered, added.factor.data(), entered,
                    added.inverse.data(), entered);
  append(pairs, added);
  return added;
}

// C grows by rows (zᵀ, G), C⁻¹ by (−G⁻¹zᵀC⁻¹, G⁻¹).
void InducingDictionary::append(const ProjectedPairs& pairs, const AddedPairs& added) {
  const auto entered = std::ssize(added.admission.entered);
  if (entered == 0) return;
  const std::int64_t before = members();
  const std::int64_t side = padded_members();
  const std::int64_t count = pairs.count;
  inverse_.reserve(stream(), before + entered, before + entered);
  std::vector<PreferencePair> places;
  std::vector<double> weights(entered * count);
  std::vector<double> along(entered * count);
  for (std::int64_t e = 0; e < entered; ++e) {
    const auto doc = static_cast<std::int32_t>(2 * added.admission.entered[e]);
    places.push_back({doc, doc + 1});
    for (std::int64_t other = 0; other <= e; ++other)
      weights[e * count + added.admission.entered[other]] = -added.inverse[e * entered + other];
    for (std::int64_t i = 0; i < count; ++i)
      along[e * count + i] = added.admission.coordinates[i * entered + e];
  }
  entered_.assign(stream(), places);
  weights_.assign(stream(), weights);
  copy_to_device(std::span<const double>(along), pairs.coordinates + before * count);
  multiply_placed(*products_, entered, side, count, {weights_.data(), count}, {pairs.solved, side},
                  inverse_.row(before), inverse_.stride());
  OwnedStream::wait_for(stream());
  for (std::int64_t e = 0; e < entered; ++e) {
    copy_to_device(std::span<const double>(added.inverse).subspan(e * entered, e + 1),
                   inverse_.row(before + e) + before);
  }
  pairs_.append(stream(), pairs.rows, entered_.data(), entered);
}

void InducingDictionary::save(StateWriter& state) const {
  pairs_.save(state);
  inverse_.save(state, "device.dictionary_inverse", members(), members());
}

void InducingDictionary::load(StateReader& state) {
  pairs_.load(stream(), state);
  if (members() > budget_) state.fail("The saved dictionary exceeds the budget.");
  inverse_.load(stream(), state, "device.dictionary_inverse", members(), members());
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
