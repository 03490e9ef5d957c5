#include "cuda/engine/inducing_covariance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/math/pair_loss.h"
#include "core/ops/blas.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/tangent_kernel.h"
#include "cuda/runtime/factorisation.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kRows = DictionaryPolicy::kRows;

/// A triangular factor [n × n] with zeros above the diagonal.
class TriangularFactor {
 public:
  TriangularFactor(Stream stream, std::int64_t n, double* values)
      : stream_(stream), n_(n), values_(values), library_(n) {}

  /// Factorises the lower triangle of `from` + diagonal · I; false where it is not positive definite.
  bool factorise(const PlacedMatrix& from, double diagonal) {
    copy_lower(stream_, n_, from, diagonal, values_, n_);
    if (!library_.factorise(stream_, values_)) return false;
    clear_above();
    return true;
  }
  void invert() {
    library_.invert_factor(stream_, values_);
    clear_above();
  }
  const double* data() const { return values_; }

 private:
  void clear_above() { copy_lower(stream_, n_, {values_, n_}, 0.0, values_, n_); }

  Stream stream_;
  std::int64_t n_;
  double* values_;
  Factorisation library_;
};

}  // namespace

InducingCovariance::InducingCovariance(double lambda, const DictionaryPolicy& policy, Products& products)
    : lambda_(lambda),
      products_(&products),
      t_(policy.budget(), policy.budget()),
      r_(policy.budget() + kRows, policy.budget()),
      coordinates_(policy.budget(), kRows) {}

std::int64_t InducingCovariance::bytes() const {
  return bytes_of(t_, r_, coordinates_, applied_, returned_, product_, weights_, factor_, information_);
}

void InducingCovariance::apply(std::int64_t padded_members, std::int64_t columns, const double* kernel,
                               double factor, double* y) {
  multiply_placed(*products_, padded_rows(), columns, padded_members, r_, {kernel, columns}, y, columns,
                  {factor, 0.0});
}

void InducingCovariance::apply_transposed(std::int64_t padded_members, std::int64_t columns,
                                          const double* y, double* x) {
  multiply_placed(*products_, padded_members, columns, padded_rows(), r_.transposed(), {y, columns}, x,
                  columns);
}

void InducingCovariance::begin_append(const ProjectedPairs& pairs) {
  const std::int64_t count = pairs.count;
  const std::int64_t side = GrowingMatrix::padded(pairs.members);
  applied_.reserve(stream(), most_rows(pairs.members) * count);
  returned_.reserve(stream(), count * side);
  product_.reserve(stream(), count * count);
  apply(side, count, pairs.kernel, 1.0, applied_.data());
  clear_numbers(stream(), returned_.data(), count * side);
  multiply_placed(*products_, count, side, padded_rows(), {applied_.data(), count, true}, r_,
                  returned_.data(), side);
  clear_numbers(stream(), product_.data(), count * count);
  multiply_placed(*products_, count, count, padded_rows(), {applied_.data(), count, true},
                  {applied_.data(), count}, product_.data(), count);
}

// Pairs with coordinates (z, f), f along what the new members bring, have (zᵀz + fᵀf)/λ − (Rκ)ᵀRκ.
std::vector<double> InducingCovariance::inverse_corner(const ProjectedPairs& pairs, const AddedPairs& added,
                                                       std::span<const double> of_coordinates) {
  const std::int64_t count = pairs.count;
  const auto entered = std::ssize(added.admission.entered);
  const std::vector<double> of_rows = product_.to_host(stream(), count * count);
  std::vector<double> corner(count * count);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      double product = of_coordinates[i * count + j];
      for (std::int64_t e = 0; e < entered; ++e) {
        product +=
            added.admission.coordinates[i * entered + e] * added.admission.coordinates[j * entered + e];
      }
      corner[i * count + j] = product / lambda_ - of_rows[i * count + j] + (i == j ? 1.0 : 0.0);
    }
  }
  double log_det = 0.0;
  try {
    blas::cholesky(count, corner.data(), count);
  } catch (const NumericError&) {
    return {};
  }
  for (std::int64_t i = 0; i < count; ++i) log_det += 2.0 * std::log(corner[i * count + i]);
  if (!std::isfinite(log_det)) return {};
  log_det_ += log_det;
  std::vector<double> inverse(count * count);
  for (std::int64_t i = 0; i < count; ++i) inverse[i * count + i] = 1.0;
  blas::solve_lower(blas::Transpose::kNo, count, count, corner.data(), count, inverse.data(), count);
  return inverse;
}

// A pair's part in the span of the grown dictionary is Σ (a − a_E c) g_Z + Σ c g_E with a = C⁻ᵀz of the old
// members and c = G⁻ᵀf: its covariance with x is ((a − a_E c)/λ − RᵀRκ, c/λ) times the kernels of x.
bool InducingCovariance::append(InducingDictionary& dictionary, const ProjectedPairs& pairs,
                                const AddedPairs& added) {
  const std::int64_t count = pairs.count;
  const auto entered = std::ssize(added.admission.entered);
  const std::int64_t members = dictionary.members();
  r_.reserve(stream(), rows() + count, members);
  coordinates_.reserve(stream(), members, kRows);
  const std::vector<double> inverse = inverse_corner(pairs, added, dictionary.gram());
  if (inverse.empty()) {
    set_status(true);
    return false;
  }
  // c [count × entered]; of a pair that has entered the unit vector, to the bit.
  std::vector<double> parts = added.admission.coordinates;
  for (std::int64_t i = 0; i < count; ++i) {
    double* row = parts.data() + i * entered;
    blas::solve_lower(blas::Transpose::kYes, entered, 1, added.factor.data(), entered, row, 1);
  }
  std::vector<double> own(count * count);  // I − c at the places of those that entered
  for (std::int64_t i = 0; i < count; ++i) own[i * count + i] = 1.0;
  for (std::int64_t e = 0; e < entered; ++e) {
    const std::int64_t pair = added.admission.entered[e];
    for (std::int64_t other = 0; other < entered; ++other)
      parts[pair * entered + other] = other == e ? 1.0 : 0.0;
    for (std::int64_t i = 0; i < count; ++i) own[i * count + pair] -= parts[i * entered + e];
  }
  // D⁻¹ times each, and −D⁻¹ for what R knows already.
  const std::int64_t second = count * count + count * count % 2;  // the arrays of products lie on 16 bytes
  std::vector<double> weights(second + count * count);
  std::vector<double> corner(count * entered);
  using blas::Transpose;
  blas::gemm(Transpose::kNo, Transpose::kNo, count, count, count, 1.0 / lambda_, inverse.data(), count,
             own.data(), count, 0.0, weights.data(), count);
  for (std::int64_t i = 0; i < count * count; ++i) weights[second + i] = -inverse[i];
  blas::gemm(Transpose::kNo, Transpose::kNo, count, entered, count, 1.0 / lambda_, inverse.data(), count,
             parts.data(), entered, 0.0, corner.data(), entered);

  const std::int64_t side = GrowingMatrix::padded(pairs.members);
  weights_.assign(stream(), weights);
  double* to = r_.row(rows());
  multiply_placed(*products_, count, side, count, {weights_.data(), count}, {pairs.solved, side}, to,
                  r_.stride());
  multiply_placed(*products_, count, side, count, {weights_.data() + second, count},
                  {returned_.data(), side}, to, r_.stride(), {1.0, 1.0});
  copy_matrix(stream(), members, count, {pairs.coordinates, count}, coordinates_.data() + appended_,
              coordinates_.stride());
  // Without new members the stream goes on.
  if (entered > 0) OwnedStream::wait_for(stream());
  for (std::int64_t i = 0; i < count && entered > 0; ++i) {
    copy_to_device(std::span<const double>(corner).subspan(i * entered, entered),
                   r_.row(rows() + i) + pairs.members);
  }
  appended_ += count;
  set_status(false);
  return true;
}

void InducingCovariance::make_room(std::int64_t members) {
  r_.reserve(stream(), rows(), members);
  coordinates_.reserve(stream(), members, kRows);
}

void InducingCovariance::add_appended(std::int64_t padded_members) {
  multiply_placed(*products_, padded_members, padded_members, appended_, coordinates_,
                  coordinates_.transposed(), t_.data(), t_.stride(), {1.0, 1.0});
}

bool InducingCovariance::factorise(InducingDictionary& dictionary) {
  const std::int64_t side = dictionary.padded_members();
  t_.reserve(stream(), side, side);
  coordinates_.reserve(stream(), side, kRows);
  add_appended(side);
  appended_ = 0;
  settled_ = dictionary.members();
  return renew_root(dictionary);
}

GrowingMatrix& InducingCovariance::new_information(std::int64_t members) {
  t_.reserve(stream(), members, members);
  t_.clear(stream());
  return t_;
}

bool InducingCovariance::factorise_information(InducingDictionary& dictionary) {
  coordinates_.reserve(stream(), dictionary.members(), kRows);
  appended_ = 0;
  settled_ = dictionary.members();
  return renew_root(dictionary);
}

bool InducingCovariance::renew_root(InducingDictionary& dictionary) {
  const bool found = find_root(dictionary);
  set_status(!found);
  return found;
}

bool InducingCovariance::find_root(InducingDictionary& dictionary) {
  const std::int64_t n = settled_;
  r_.reserve(stream(), n + kRows, n);
  r_.clear(stream());
  coordinates_.clear(stream());
  OwnedStream::wait_for(stream());
  log_det_ = 0.0;
  if (n == 0) return true;
  factor_.reserve(stream(), n * n);
  information_.reserve(stream(), n * n);
  TriangularFactor factor(stream(), n, factor_.data());
  if (!factor.factorise(t_, lambda_)) return false;
  status_of_factor(stream(), n, factor.data(), lambda_, status_.get());
  OwnedStream::wait_for(stream());
  const CovarianceStatus found = status_.read();
  if (found.failed != 0) return false;
  log_det_ = found.log_det;
  factor.invert();
  reset_inverse_covariance(stream(), n, lambda_, information_.data());
  multiply_placed(*products_, n, n, n, {factor.data(), n, true}, {factor.data(), n}, information_.data(), n,
                  {-1.0, 1.0});
  for (double shift = 0.0; !factor.factorise({information_.data(), n}, shift / lambda_);
       shift = DictionaryPolicy::next_shift(shift)) {
    if (shift >= DictionaryPolicy::kMostShift) return false;
  }
  multiply_placed(*products_, n, n, n, {factor.data(), n, true}, dictionary.inverse(), r_.data(),
                  r_.stride());
  return true;
}

void InducingCovariance::quadratic_form(std::int64_t padded_members, std::int64_t columns, double* left,
                                        double* right) {
  t_.reserve(stream(), padded_members, padded_members);
  coordinates_.reserve(stream(), padded_members, kRows);
  double* along = left + padded_members * columns;  // zᵀ of the appended pairs' coordinates
  clear_numbers(stream(), along, kRows * columns);
  clear_numbers(stream(), right, padded_members * columns);
  multiply_placed(*products_, padded_members, columns, padded_members, t_, {left, columns}, right, columns);
  multiply_placed(*products_, appended_, columns, padded_members, coordinates_.transposed(),
                  {left, columns}, along, columns);
  copy_numbers(stream(), right + padded_members * columns, along, kRows * columns);
}

void InducingCovariance::save(StateWriter& state, std::int64_t members) const {
  state.put("device.inducing_settled", settled_);
  state.put("device.inducing_appended", appended_);
  state.put("device.log_det", log_det_);
  t_.save(state, "device.inducing_information", settled_, settled_);
  r_.save(state, "device.inducing_root", rows(), members);
  coordinates_.save(state, "device.inducing_coordinates", members, appended_);
}

void InducingCovariance::load(StateReader& state, std::int64_t members) {
  settled_ = state.get_one<std::int64_t>("device.inducing_settled");
  appended_ = state.get_one<std::int64_t>("device.inducing_appended");
  if (!DictionaryPolicy::rows_fit(members, settled_, appended_))
    state.fail("The rows of the covariance do not fit its dictionary.");
  log_det_ = state.get_one<double>("device.log_det");
  t_.load(stream(), state, "device.inducing_information", settled_, settled_);
  r_.load(stream(), state, "device.inducing_root", rows(), members);
  coordinates_.load(stream(), state, "device.inducing_coordinates", members, appended_);
  set_status(false);
}

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
  return bytes_of(pairs_, inverse_, of_docs_, both_, kernel_, coordinates_, solved_, product_, weights_,
                  entered_, differences_);
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
