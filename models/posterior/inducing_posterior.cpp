#include "models/posterior/inducing_posterior.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/math/any_cpu.h"
#include "core/online/retraining.h"
#include "core/ops/blas.h"
#include "core/ops/gradient_products.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

using blas::Transpose;

/// Pairs whose coordinates are computed at once.
constexpr std::int64_t kPairsPerProjection = 40 * blas::kFastColumns;
constexpr std::int64_t kRowsPerMove = 128;

}  // namespace

InducingPosterior::InducingPosterior(const PosteriorSpec& spec) : Posterior(spec), state_(spec) {}

InducingPosterior::InducingPosterior(const InducingPosterior& other)
    : Posterior(other), state_(other.state_) {}

std::shared_ptr<const Posterior> InducingPosterior::freeze() const {
  return std::shared_ptr<const Posterior>(new InducingPosterior(*this));
}

std::int64_t InducingPosterior::bytes() const {
  return state_.dictionary.bytes() + state_.covariance.bytes() + state_.window.bytes() +
         state_.left.bytes();
}

void InducingPosterior::find_gram(ExecutionContext& context, TangentFactors docs, double* kappa, double* y,
                                  double* m) const {
  const std::int64_t count = docs.docs;
  const std::int64_t padded = blas::fast_columns(count);
  doc_kernel(context, spec_.shape, docs, spec_.scale / spec_.lambda, m);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  TangentFactors columns = docs;
  if (padded > count) {  // with documents whose gradient is zero
    const auto factors = scratch.take<float>(padded * spec_.shape.factors());
    float* end = std::copy_n(docs.values, count * spec_.shape.factors(), factors.data());
    std::fill(end, factors.data() + factors.size(), 0.0F);
    columns = {factors.data(), padded};
  }
  state_.dictionary.find_kernel(context, columns, kappa);
  state_.covariance.apply(context, members(), padded, kappa, y);
  subtract_gram(context, state_.covariance.rows(), count, y, padded, m, count);
}

WidthHealth InducingPosterior::widths(ExecutionContext& context, TangentFactors docs,
                                      std::span<double> width_sq) const {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const std::int64_t columns = blas::fast_columns(docs.docs);
  const auto kappa = scratch.take<double>(members() * columns);
  const auto y = scratch.take<double>(state_.covariance.rows() * columns);
  find_gram(context, docs, kappa.data(), y.data(), width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

void InducingPosterior::find_latest(ExecutionContext& context, TangentFactors docs) {
  latest_.pairs = -1;
  const std::int64_t columns = blas::fast_columns(docs.docs);
  latest_.kappa.resize(members() * columns);
  latest_.y.resize(state_.covariance.rows() * columns);
  latest_.m.resize(docs.docs * docs.docs);
  find_gram(context, docs, latest_.kappa.data(), latest_.y.data(), latest_.m.data());
  latest_.factors.assign(docs.values, docs.values + docs.docs * spec_.shape.factors());
  latest_.pairs = state_.roll.pairs();
}

bool InducingPosterior::is_latest(TangentFactors docs) const {
  const auto numbers = static_cast<std::size_t>(docs.docs * spec_.shape.factors());
  return latest_.pairs == state_.roll.pairs() && latest_.factors.size() == numbers &&
         std::memcmp(latest_.factors.data(), docs.values, numbers * sizeof(float)) == 0;
}

WidthHealth InducingPosterior::widths_for_update(ExecutionContext& context, TangentFactors docs,
                                                 std::span<double> width_sq) {
  find_latest(context, docs);
  return pair_width_sq(context, docs.docs, latest_.m.data(), width_sq.data());
}

void InducingPosterior::width_sq(ExecutionContext& context, TangentFactors docs,
                                 std::span<double> width_sq) {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  WidthHealth health = widths_for_update(context, docs, width_sq);
  if (health.lost > 0) {
    all_or_nothing([&] {
      rebuild(context, kIndefinite);
      health = widths_for_update(context, docs, width_sq);
      if (health.lost > 0) throw_lost_precision(name(), kIndefinite);
    });
  }
  negative_widths_ += health.negative;
}

void InducingPosterior::observe(ExecutionContext& context, TangentFactors docs,
                                std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  require_information(spec_.shape, spec_.lambda, spec_.scale, docs, pairs);
  require_room(docs.docs, std::ssize(pairs));
  all_or_nothing([&] { take_in(context, docs, pairs); });
}

template <class Change>
void InducingPosterior::all_or_nothing(const Change& change) {
  State earlier = state_;
  const std::int64_t unchecked = monitor_.unchecked();
  try {
    change();
  } catch (...) {
    state_ = std::move(earlier);
    state_.dictionary.truncate(state_.dictionary.members());
    state_.window.truncate(state_.window.pairs());
    latest_.pairs = -1;
    monitor_.set_unchecked(unchecked);
    throw;
  }
}

void InducingPosterior::require_room(std::int64_t docs, std::int64_t added) const {
  const std::int64_t pairs = state_.roll.pairs() + added;
  const PosteriorLoad load{.shape = spec_.shape, .pairs = pairs, .docs = docs, .added = added};
  const double needed = inducing_bytes(load, spec_.budget).all();
  if (needed <= static_cast<double>(spec_.memory)) return;
  throw_error<Error>(
      "The inducing covariance of {} pairs with a budget of {} needs {} of memory, and {} may be used: "
      "choose a smaller budget.",
      pairs, spec_.budget, readable_bytes(needed), readable_bytes(static_cast<double>(spec_.memory)));
}

void InducingPosterior::take_in(ExecutionContext& context, TangentFactors docs,
                                std::span<const PreferencePair> pairs) {
  while (!pairs.empty()) {
    const auto at_once = pairs.first(std::min(pairs.size(), std::size_t{DictionaryPolicy::kRows}));
    const std::int64_t before = state_.roll.pairs();
    try {
      take_in_block(context, docs, at_once);
    } catch (const NumericError& error) {
      // Pairs may have entered the dictionary without rows.
      state_.dictionary.truncate(std::ssize(state_.roll.members()));
      rebuild(context, error.what());
      if (state_.roll.pairs() == before) take_in_block(context, docs, at_once);
    }
    monitor_.add(std::ssize(at_once), state_.roll.pairs());
    pairs = pairs.subspan(at_once.size());
  }
  if (!monitor_.is_due()) return;
  monitor_.check(
      name(), [&] { return measured_drift(context); },
      [&](std::string_view why) { rebuild(context, why); });
}

void InducingPosterior::take_in_block(ExecutionContext& context, TangentFactors docs,
                                      std::span<const PreferencePair> pairs) {
  if (state_.covariance.room() < std::ssize(pairs)) {
    state_.covariance.factorise(context, state_.dictionary);
    latest_.pairs = -1;
  }
  add_rows(context, docs, pairs);
  keep_up(context);
}

// With Z the coordinates of the new pairs in the grown basis, A⁻¹ loses the outer products of the rows of
// (I + Zᵀ B⁻¹ Z)^(−1/2) Zᵀ B⁻¹ in it, so R gains (…)^(−1/2) Zᵀ B⁻¹ C⁻¹, and Zᵀ B⁻¹ C⁻¹ = Zᵀ C⁻¹/λ − (Q κ)ᵀ.
void InducingPosterior::add_rows(ExecutionContext& context, TangentFactors docs,
                                 std::span<const PreferencePair> pairs) {
  // A ranker may learn without having ranked; the result depends on the feedback alone.
  if (!is_latest(docs)) find_latest(context, docs);
  const auto k = std::ssize(pairs);
  const std::int64_t before = members();
  const std::int64_t rows = state_.covariance.rows();
  const std::int64_t count = docs.docs;
  const std::int64_t of_latest = blas::fast_columns(count);
  const std::int64_t columns = blas::fast_columns(k);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto solved = scratch.take<double>(before * columns);  // C⁻¹κ
  for (std::int64_t i = 0; i < before; ++i) {
    const double* kappa = latest_.kappa.data() + i * of_latest;
    double* row = solved.data() + i * columns;
    for (std::int64_t a = 0; a < k; ++a) row[a] = kappa[pairs[a].winner] - kappa[pairs[a].loser];
    std::fill(row + k, row + columns, 0.0);
  }
  state_.dictionary.project(context, columns, solved.data());
  const auto y = scratch.take<double>(k * rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    const double* of_docs = latest_.y.data() + r * of_latest;
    for (std::int64_t a = 0; a < k; ++a)
      y[a * rows + r] = of_docs[pairs[a].winner] - of_docs[pairs[a].loser];
  }
  // s g_a·g_b, of which first what A has learnt is missing, then what the dictionary spans.
  const auto m = [&](std::int64_t i, std::int64_t j) {
    return latest_.m[std::max(i, j) * count + std::min(i, j)];
  };
  std::vector<double> gram(k * k);
  std::vector<double> residual(k * k);
  std::vector<double> magnitudes(k);
  for (std::int64_t a = 0; a < k; ++a) {
    const PreferencePair& of_a = pairs[a];
    for (const std::int32_t doc : {of_a.winner, of_a.loser})
      magnitudes[a] += spec_.scale * gradient_length_sq(spec_.shape, docs.row(spec_.shape, doc));
    for (std::int64_t b = 0; b <= a; ++b) {
      const PreferencePair& of_b = pairs[b];
      gram[a * k + b] = pair_product(m(of_a.winner, of_b.winner), m(of_a.winner, of_b.loser),
                                     m(of_a.loser, of_b.winner), m(of_a.loser, of_b.loser));
      const double learnt =
          std::inner_product(y.data() + a * rows, y.data() + (a + 1) * rows, y.data() + b * rows, 0.0);
      residual[a * k + b] = spec_.lambda * (gram[a * k + b] + learnt);
    }
  }
  subtract_gram(context, before, k, solved.data(), columns, residual.data(), k);
  mirror_lower(k, residual.data());
  const std::vector<double> before_admission = residual;
  const Admission admission =
      state_.dictionary.add(state_.roll.policy(), docs, pairs, solved, columns, magnitudes, residual);
  const auto entered = std::ssize(admission.entered);
  const std::int64_t size = members();
  const auto z = scratch.take<double>(k * size);
  const auto added = scratch.take<double>(k * size);
  const auto outside = scratch.take<double>(size * columns);
  const auto known = scratch.take<double>(k * before);
  state_.covariance.apply_from_right(context, before, k, y.data(), known.data());
  for (std::int64_t a = 0; a < k; ++a) {
    for (std::int64_t i = 0; i < before; ++i) z[a * size + i] = solved[i * columns + a];
    std::copy_n(admission.coordinates.data() + a * entered, entered, z.data() + a * size + before);
    for (std::int64_t i = 0; i < size; ++i) outside[i * columns + a] = z[a * size + i];
  }
  for (std::int64_t i = 0; i < size; ++i)
    std::fill(outside.data() + i * columns + k, outside.data() + (i + 1) * columns, 0.0);
  // C⁻ᵀz of a pair of the dictionary is a unit vector.
  if (entered < k) state_.dictionary.project(context, columns, outside.data(), Transpose::kYes);
  for (std::int64_t a = 0; a < k; ++a) {
    for (std::int64_t i = 0; i < size; ++i)
      added[a * size + i] =
          outside[i * columns + a] / spec_.lambda - (i < before ? known[a * before + i] : 0.0);
  }
  for (std::int64_t e = 0; e < entered; ++e) {
    const std::int64_t a = admission.entered[e];
    for (std::int64_t i = 0; i < size; ++i)
      added[a * size + i] =
          (i == before + e ? 1.0 / spec_.lambda : 0.0) - (i < before ? known[a * before + i] : 0.0);
  }
  for (std::int64_t a = 0; a < k; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) gram[a * k + b] -= residual[a * k + b] / spec_.lambda;
    gram[a * (k + 1)] += 1.0;
  }
  blas::cholesky(k, gram.data(), k);
  double log_det = 0.0;
  for (std::int64_t a = 0; a < k; ++a) log_det += 2.0 * log_of(gram[a * (k + 1)]);
  if (!std::isfinite(log_det)) throw NumericError("The pairs' gradients are not finite.");
  blas::solve_lower(Transpose::kNo, k, size, gram.data(), k, added.data(), size);
  state_.covariance.append(size, k, added.data(), z.data(), log_det);
  state_.roll.add(before_admission, magnitudes, admission);
  state_.window.append(docs, pairs);
  latest_.pairs = -1;
}

void InducingPosterior::keep_up(ExecutionContext& context) {
  state_.roll.keep_up([&](std::span<const std::int64_t> chosen) { choose_again(context, chosen); },
                      [&] { trim_window(context); }, [&] { project_again(context); },
                      [&] {
                        if (state_.covariance.room() == 0)
                          state_.covariance.factorise(context, state_.dictionary);
                      });
}

void InducingPosterior::choose_again(ExecutionContext& context, std::span<const std::int64_t> chosen) {
  state_.covariance.clear();
  InducingDictionary next(spec_.shape, spec_.scale);
  state_.roll.choose_again(chosen, [&](std::span<const std::int64_t> block) {
    ObservedPairs pairs(spec_.shape);
    for (const std::int64_t number : block) {
      const auto [in_window, at] = state_.roll.place_of(number);
      pairs.append(in_window ? state_.window.all() : state_.dictionary.factors(), pairs_of_rows(at, 1));
    }
    return next.add(context, state_.roll.policy(), pairs.all());
  });
  state_.left = moved(context, next);
  state_.dictionary = std::move(next);
}

LowerTriangle InducingPosterior::moved(ExecutionContext& context, const InducingDictionary& next) const {
  const std::int64_t from = state_.left.size();
  const std::int64_t to = next.members();
  LowerTriangle result(from == 0 ? 0 : to);
  if (from == 0) return result;
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto p = scratch.take<double>(to * from);
  {
    // The new pairs in the present basis.
    const Scratch::Frame of_kernel(scratch);
    const auto kernel = scratch.take<double>(members() * to);
    state_.dictionary.find_pair_kernel(context, next.factors(), kernel.data());
    state_.dictionary.project(context, to, kernel.data());
    for (std::int64_t i = 0; i < to; ++i) {
      for (std::int64_t j = 0; j < from; ++j) p[i * from + j] = kernel[j * to + i];
    }
  }
  next.project(context, from, p.data());
  const auto whole = scratch.take<double>(from * from);
  for (std::int64_t i = 0; i < from; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) whole[i * from + j] = whole[j * from + i] = state_.left.row(i)[j];
  }
  context.for_blocks(to, kRowsPerMove, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& own = context.scratch(worker);
    const Scratch::Frame of_block(own);
    const auto product = own.take<double>((end - begin) * from);
    blas::gemm(Transpose::kNo, Transpose::kNo, end - begin, from, from, 1.0, p.data() + begin * from, from,
               whole.data(), from, 0.0, product.data(), from);
    blas::gemm(Transpose::kNo, Transpose::kYes, end - begin, end, from, 1.0, product.data(), from, p.data(),
               from, 0.0, result.row(begin), result.stride());
  });
  return result;
}

void InducingPosterior::project_again(ExecutionContext& context) {
  LowerTriangle t = state_.left.extended(members());
  add_projections(context, 0, state_.window.pairs(), t);
  state_.covariance.factorise(context, state_.dictionary, std::move(t));
  state_.roll.set_projected();
}

void InducingPosterior::add_projections(ExecutionContext& context, std::int64_t first, std::int64_t count,
                                        LowerTriangle& t) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto z = scratch.take<double>(members() * std::min(count, kPairsPerProjection));
  for (std::int64_t done = 0; done < count; done += kPairsPerProjection) {
    const std::int64_t pairs = std::min(count - done, kPairsPerProjection);
    state_.dictionary.find_pair_kernel(context, state_.window.range(first + done, pairs), z.data());
    state_.dictionary.project(context, pairs, z.data());
    add_outer_products(context, pairs, z.data(), pairs, t);
  }
}

void InducingPosterior::trim_window(ExecutionContext& context) {
  const std::int64_t leaving = state_.roll.leaving();
  if (leaving == 0) return;
  LowerTriangle left = state_.left.extended(members());
  add_projections(context, 0, leaving, left);
  state_.left = std::move(left);
  ObservedPairs kept(spec_.shape);
  kept.append(state_.window.all(), pairs_of_rows(leaving, state_.window.pairs() - leaving));
  state_.window = std::move(kept);
  state_.roll.trim(leaving);
}

void InducingPosterior::rebuild(ExecutionContext& context, std::string_view why) {
  log_detail("The dictionary of {} pairs is chosen again: {}.", state_.roll.pairs(), why);
  try {
    choose_again(context, state_.roll.be_stricter());
    trim_window(context);
    project_again(context);
  } catch (const NumericError&) {
    throw_lost_precision(name(), kIndefinite);
  }
  latest_.pairs = -1;
  ++state_.rebuilds;
  monitor_.restart();
}

double InducingPosterior::measured_drift(ExecutionContext& context) const {
  std::vector<double> gradient(spec_.shape.parameters());
  return measure_drift(
      spec_.checks, spec_.shape.parameters(), state_.window.pairs(),
      [&](std::span<const double> vector) { return error_along(context, vector, std::nullopt); },
      [&](std::int64_t pair) {
        const TangentFactors docs = state_.window.range(pair, 1);
        const double one = 1.0;
        pair_gradient_sum(context, spec_.shape, docs, std::span(&one, 1), gradient);
        std::array<double, 4> width_sq{};
        widths(context, docs, width_sq);
        return error_along(context, gradient, width_sq[1] / spec_.scale);
      });
}

// A⁻¹v = v/λ − √s Γᵀ Q Γ v √s with Γ's rows the dictionary's gradients, from R; yᵀAy from C and T.
double InducingPosterior::error_along(ExecutionContext& context, std::span<const double> v,
                                      std::optional<double> width_sq) const {
  const TangentFactors pairs = state_.dictionary.factors();
  const std::int64_t size = members();
  const double root = std::sqrt(spec_.scale);
  std::vector<double> kappa(size);
  std::vector<double> half(state_.covariance.rows());
  std::vector<double> weights(size);
  std::vector<double> y(v.size());
  pair_gradient_products(context, spec_.shape, pairs, v, kappa);
  for (double& value : kappa) value *= root;
  state_.covariance.apply(context, size, 1, kappa.data(), half.data());
  state_.covariance.apply_from_right(context, size, 1, half.data(), weights.data());
  for (double& value : weights) value *= root;
  pair_gradient_sum(context, spec_.shape, pairs, weights, y);
  for (std::size_t k = 0; k < v.size(); ++k) y[k] = v[k] / spec_.lambda - y[k];
  pair_gradient_products(context, spec_.shape, pairs, y, kappa);
  for (double& value : kappa) value *= root;
  state_.dictionary.project(context, 1, kappa.data());
  const double v_y = std::inner_product(v.begin(), v.end(), y.begin(), 0.0);
  const double y_a_y = spec_.lambda * std::inner_product(y.begin(), y.end(), y.begin(), 0.0) +
                       state_.covariance.quadratic_form(kappa);
  return width_error(width_sq.value_or(v_y), v_y, y_a_y);
}

void InducingPosterior::save(StateWriter& state) const {
  state.put("inducing_pairs", state_.roll.pairs());
  state.put("inducing_numbers", state_.roll.members());
  state_.dictionary.save(state);
  state_.covariance.save(state);
  state_.window.save(state);
  state.put("inducing_priorities", state_.roll.priorities());
  state.put("inducing_left", state_.left.size());
  state_.left.save(state, "inducing_earlier");
  state.put("inducing_projected", state_.roll.projected());
  state.put("inducing_least_share", state_.roll.policy().least_share());
  state.put("covariance_unchecked", monitor_.unchecked());
  state.put("covariance_negative_widths", negative_widths_);
  state.put("covariance_rebuilds", state_.rebuilds);
}

void InducingPosterior::load(StateReader& state) {
  State next(spec_);
  const auto pairs = state.get_one<std::int64_t>("inducing_pairs");
  std::vector<std::int64_t> numbers = state.get<std::int64_t>("inducing_numbers");
  next.dictionary.load(state);
  const std::int64_t size = next.dictionary.members();
  if (std::ssize(numbers) != size)
    state.fail("The covariance's dictionary does not have the size that was saved with it.");
  next.covariance.load(state, size);
  next.window.load(state);
  std::vector<double> priorities = state.get<double>("inducing_priorities");
  if (std::ssize(priorities) != next.window.pairs())
    state.fail("The covariance's newest pairs are not those that it counts.");
  const auto left = state.get_one<std::int64_t>("inducing_left");
  if (left < 0 || left > size) state.fail("A matrix of the covariance is larger than its dictionary.");
  next.left.load(state, "inducing_earlier", left);
  const auto projected = state.get_one<std::int64_t>("inducing_projected");
  if (!next.roll.restore(pairs, std::move(numbers), std::move(priorities), projected))
    state.fail("The numbers of the covariance's pairs cannot belong together.");
  if (!next.roll.policy().restore_least_share(state.get_one<double>("inducing_least_share")))
    state.fail("The least share of a pair in the dictionary is not one that it can have.");
  monitor_.set_unchecked(state.get_one<std::int64_t>("covariance_unchecked"));
  negative_widths_ = state.get_one<std::int64_t>("covariance_negative_widths");
  next.rebuilds = state.get_one<std::int64_t>("covariance_rebuilds");
  state_ = std::move(next);
  latest_.pairs = -1;
}

}  // namespace olrank
