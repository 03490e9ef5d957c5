#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/covariance/dictionary_policy.h"
#include "cuda/engine/drift_check.h"
#include "cuda/engine/inducing_covariance.h"
#include "cuda/engine/resident_pairs.h"
#include "cuda/engine/resident_posterior.h"
#include "cuda/ops/inverse_factor.h"
#include "cuda/ops/tangent_kernel.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kRows = DictionaryPolicy::kRows;
static_assert(kRows <= kMostPairsPerBatch);

class ResidentInducing : public ResidentPosterior {
 public:
  ResidentInducing(const PosteriorSpec& spec, Products& products)
      : ResidentPosterior(spec),
        products_(&products),
        roll_(DictionaryPolicy(spec.budget)),
        dictionary_(made_dictionary()),
        covariance_(spec.lambda, roll_.policy(), products),
        window_(std::make_unique<ResidentPairs>(spec.shape)),
        left_(spec.budget, spec.budget),
        check_(spec.shape) {}

  void gram(Stream stream, const FactorRows& docs, double* m) override {
    const std::int64_t rows = covariance_.padded_rows();
    kernel_.reserve(stream, dictionary_->padded_members() * docs.docs);
    const std::int64_t most_rows = covariance_.most_rows(dictionary_->members());
    applied_.reserve(stream, most_rows * docs.docs);
    FactorTail all;  // without rows of a tail
    all.head = most_rows;
    const std::int64_t most = tail_workspace(all, docs.docs, true);
    all.head = rows;
    workspace_.reserve(stream, std::max(tail_workspace(all, docs.docs, true), most));
    dictionary_->find_kernel(docs, m, kernel_.data());
    // M = (s K − λ κᵀRᵀRκ)/λ.
    covariance_.apply(dictionary_->padded_members(), docs.docs, kernel_.data(), std::sqrt(spec_.lambda),
                      applied_.data());
    dual_gram(stream, all, docs.docs, nullptr, applied_.data(), docs.docs, spec_.lambda, workspace_.data(),
              m);
  }

  void observe(Stream stream, const FactorRows& docs, const double*, const PreferencePair* pairs,
               std::int64_t count) override {
    for (std::int64_t first = 0; first < count; first += kRows)
      take_in(stream, docs, pairs + first, std::min(kRows, count - first));
  }

  void rebuild(Stream stream) override {
    choose_again(stream, roll_.be_stricter());
    trim_window(stream);
    project_again(stream);
  }

  const CovarianceStatus* status() const override { return covariance_.status(); }

  // A⁻¹v = v/λ − √s Γᵀ RᵀR Γ v √s with Γ's rows the dictionary's gradients; yᵀAy from C⁻¹ and T.
  std::vector<double> errors_of(Stream stream, const DriftProbes& probes) override {
    check_.bring(stream, probes, *window_);
    gram(stream, check_.pair_docs(), check_.m());
    ResidentPairs& pairs = dictionary_->pairs();
    const std::int64_t side = dictionary_->padded_members();
    const std::int64_t columns = check_.columns();
    const double root = std::sqrt(spec_.scale);
    vector_.reserve(stream, (side + kRows) * columns);
    weights_.reserve(stream, (side + kRows) * columns);
    half_.reserve(stream, covariance_.padded_rows() * columns);
    const auto find_kernel = [&](const double* x) {
      clear_numbers(stream, vector_.data(), side * columns);
      pairs.products(stream, columns, x, root, {vector_.data(), columns, 1});
    };
    find_kernel(check_.v());
    clear_numbers(stream, weights_.data(), side * columns);
    covariance_.apply(side, columns, vector_.data(), 1.0, half_.data());
    covariance_.apply_transposed(side, columns, half_.data(), weights_.data());
    pairs.sum(stream, columns, {weights_.data(), columns, 1}, check_.own());
    finish_solutions(stream, check_.numbers(), check_.v(), root * spec_.lambda, spec_.lambda, check_.own());
    find_kernel(check_.own());
    multiply_placed(*products_, side, columns, side, dictionary_->inverse(), {vector_.data(), columns},
                    weights_.data(), columns);
    covariance_.quadratic_form(side, columns, weights_.data(), vector_.data());
    return check_.errors(stream, check_.own(),
                         {.rows = side + kRows,
                          .left = weights_.data(),
                          .right = vector_.data(),
                          .lambda = spec_.lambda,
                          .scale = spec_.scale});
  }

  std::int64_t pairs() const override { return roll_.pairs(); }
  std::int64_t kept_pairs() const override { return window_->pairs(); }
  std::int64_t bytes() const override {
    return dictionary_->bytes() + (other_dictionary_ ? other_dictionary_->bytes() : 0) +
           (other_window_ ? other_window_->bytes() : 0) + covariance_.bytes() + window_->bytes() +
           bytes_of(left_, kernel_, applied_, workspace_, places_, block_, check_, vector_, half_, weights_,
                    projections_, moved_);
  }

  void save(StateWriter& state) const override {
    state.put("device.inducing_pairs", roll_.pairs());
    state.put("device.inducing_numbers", roll_.members());
    state.put("device.inducing_priorities", roll_.priorities());
    state.put("device.inducing_projected", roll_.projected());
    state.put("device.inducing_least_share", roll_.policy().least_share());
    dictionary_->save(state);
    covariance_.save(state, dictionary_->members());
    window_->save(state);
    state.put("device.inducing_left", left_size_);
    left_.save(state, "device.inducing_earlier", left_size_, left_size_);
  }
  void load(Stream stream, StateReader& state) override {
    const auto pairs = state.get_one<std::int64_t>("device.inducing_pairs");
    auto members = state.get<std::int64_t>("device.inducing_numbers");
    auto priorities = state.get<double>("device.inducing_priorities");
    const auto projected = state.get_one<std::int64_t>("device.inducing_projected");
    if (!roll_.restore(pairs, std::move(members), std::move(priorities), projected))
      state.fail("The saved dictionary does not fit its budget.");
    if (!roll_.policy().restore_least_share(state.get_one<double>("device.inducing_least_share")))
      state.fail("The least share of a pair in the dictionary is not one that it can have.");
    dictionary_->load(state);
    if (dictionary_->members() != std::ssize(roll_.members()))
      state.fail("The dictionary does not have the size that was saved with it.");
    covariance_.load(state, dictionary_->members());
    window_->load(stream, state);
    if (window_->pairs() != std::ssize(roll_.priorities()))
      state.fail("The covariance's newest pairs are not those that it counts.");
    left_size_ = state.get_one<std::int64_t>("device.inducing_left");
    if (left_size_ < 0 || left_size_ > dictionary_->members())
      state.fail("A matrix of the covariance is larger than its dictionary.");
    left_.load(stream, state, "device.inducing_earlier", left_size_, left_size_);
    out_of_step_ = false;
  }

 private:
  std::unique_ptr<InducingDictionary> made_dictionary() const {
    return std::make_unique<InducingDictionary>(spec_.shape, spec_.scale, spec_.budget, *products_);
  }

  void factorise() { out_of_step_ = !covariance_.factorise(*dictionary_); }

  // Out of step, pairs enter the window and the dictionary alone, until project_again() takes them in.
  void take_in(Stream stream, const FactorRows& docs, const PreferencePair* pairs, std::int64_t count) {
    if (!out_of_step_ && covariance_.room() < count) factorise();
    window_->append(stream, docs, pairs, count);
    const ProjectedPairs projected =
        dictionary_->project_pairs(window_->range(window_->pairs() - count, count));
    if (!out_of_step_) covariance_.begin_append(projected);
    const AddedPairs added = dictionary_->add(roll_.policy(), projected);
    roll_.add(added.residual, added.magnitudes, added.admission);
    if (out_of_step_) {
      covariance_.make_room(dictionary_->members());
      return;
    }
    out_of_step_ = !covariance_.append(*dictionary_, projected, added);
    if (!out_of_step_) keep_up(stream);
  }

  void keep_up(Stream stream) {
    roll_.keep_up([&](std::span<const std::int64_t> chosen) { choose_again(stream, chosen); },
                  [&] { trim_window(stream); }, [&] { project_again(stream); },
                  [&] {
                    if (covariance_.room() == 0) factorise();
                  });
  }

  /// Copies pairs of `from` to place `at` of block_.
  void gather(Stream stream, const FactorRows& from, std::span<const PreferencePair> pairs,
              std::int64_t at) {
    places_.assign(stream, pairs);
    gather_pairs(stream, from, reinterpret_cast<const std::int32_t*>(places_.data()), std::ssize(pairs),
                 block_.data() + at * 2 * spec_.shape.factors());
  }

  /// Makes these pairs the dictionary, in ascending order, as far as they are new.
  void choose_again(Stream stream, std::span<const std::int64_t> chosen) {
    if (!other_dictionary_) other_dictionary_ = made_dictionary();
    InducingDictionary& next = *other_dictionary_;
    next.clear();
    block_.reserve(stream, kRows * 2 * spec_.shape.factors());
    roll_.choose_again(chosen, [&](std::span<const std::int64_t> block) {
      std::vector<PreferencePair> of_dictionary;
      std::vector<PreferencePair> of_window;
      for (const std::int64_t number : block) {
        const auto [in_window, at] = roll_.place_of(number);
        const auto row = static_cast<std::int32_t>(2 * at);
        (in_window ? of_window : of_dictionary).push_back({row, row + 1});
      }
      // Numbers ascend, so that those of the window come last.
      gather(stream, dictionary_->pairs().all(), of_dictionary, 0);
      gather(stream, window_->all(), of_window, std::ssize(of_dictionary));
      const FactorRows rows{block_.data(), 2 * std::ssize(block), spec_.shape.factors()};
      return next.add(roll_.policy(), next.project_pairs(rows)).admission;
    });
    move_left(stream, next);
    std::swap(dictionary_, other_dictionary_);
  }

  /// The sum S of what has left becomes P S Pᵀ, with the projection P from the present dictionary's span to
  /// that of `next`.
  void move_left(Stream stream, InducingDictionary& next) {
    if (left_size_ == 0) return;
    const std::int64_t from = dictionary_->members();
    const std::int64_t to = next.members();
    left_.reserve(stream, std::max(from, to), std::max(from, to));
    projections_.reserve(stream, next.padded_members() * from);
    moved_.reserve(stream, to * from);
    double* kernel = projections_.data();  // C⁻¹ of the new one times K
    double* p = moved_.data();
    next.find_coordinates(dictionary_->pairs().all(), kernel, from);
    multiply_placed(*products_, to, from, from, {kernel, from}, dictionary_->inverse().transposed(), p,
                    from);
    multiply_placed(*products_, to, from, from, {p, from}, left_, kernel, from);
    left_.clear(stream);
    multiply_placed(*products_, to, to, from, {kernel, from}, {p, from, true}, left_.data(),
                    left_.stride());
    left_size_ = to;
  }

  /// Adds z zᵀ of the window's first pairs to t.
  void add_projections(Stream stream, std::int64_t count, GrowingMatrix& t) {
    const std::int64_t side = dictionary_->padded_members();
    const std::int64_t at_once = std::min(count, kMostPairsPerBatch);
    projections_.reserve(stream, side * at_once);
    double* z = projections_.data();
    for (std::int64_t first = 0; first < count; first += at_once) {
      const std::int64_t pairs = std::min(count - first, at_once);
      dictionary_->find_coordinates(window_->range(first, pairs), z, pairs);
      multiply_placed(*products_, side, side, pairs, {z, pairs}, {z, pairs, true}, t.data(), t.stride(),
                      {1.0, 1.0});
    }
  }

  void trim_window(Stream stream) {
    const std::int64_t leaving = roll_.leaving();
    if (leaving == 0) return;
    left_size_ = dictionary_->members();
    left_.reserve(stream, left_size_, left_size_);
    add_projections(stream, leaving, left_);
    const std::vector<PreferencePair> places = pairs_of_rows(leaving, window_->pairs() - leaving);
    if (!other_window_) other_window_ = std::make_unique<ResidentPairs>(spec_.shape);
    other_window_->clear();
    places_.assign(stream, places);
    other_window_->append(stream, window_->all(), places_.data(), std::ssize(places));
    std::swap(window_, other_window_);
    roll_.trim(leaving);
  }

  void project_again(Stream stream) {
    GrowingMatrix& t = covariance_.new_information(dictionary_->members());
    copy_matrix(stream, left_size_, left_size_, left_, t.data(), t.stride());
    add_projections(stream, window_->pairs(), t);
    out_of_step_ = !covariance_.factorise_information(*dictionary_);
    roll_.set_projected();
  }

  Products* products_;
  DictionaryRoll roll_;
  std::unique_ptr<InducingDictionary> dictionary_;
  InducingCovariance covariance_;
  std::unique_ptr<ResidentPairs> window_;  // the newest pairs
  GrowingMatrix left_;                     // Σ z zᵀ of the pairs that have left it
  std::int64_t left_size_ = 0;
  bool out_of_step_ = false;  // R lacks the latest pairs, or rounding has prevented it
  // The dictionary and the window change places with these, so that renewing them frees no memory, for
  // which the whole device would wait.
  std::unique_ptr<InducingDictionary> other_dictionary_;
  std::unique_ptr<ResidentPairs> other_window_;
  GrowingArray<double> projections_;
  GrowingArray<double> moved_;
  GrowingArray<double> kernel_;
  GrowingArray<double> applied_;
  GrowingArray<double> workspace_;
  GrowingArray<PreferencePair> places_;
  GrowingArray<float> block_;
  // Drift checks use these.
  DriftCheck check_;
  GrowingArray<double> vector_;
  GrowingArray<double> half_;
  GrowingArray<double> weights_;
};

}  // namespace

std::unique_ptr<ResidentPosterior> make_resident_inducing(const PosteriorSpec& spec, Products& products) {
  return std::make_unique<ResidentInducing>(spec, products);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
