#include "models/posterior/full_posterior.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include "core/online/retraining.h"
#include "core/ops/gradient_products.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {

FullPosterior::FullPosterior(const PosteriorSpec& spec)
    : Posterior(spec), policy_(spec.shape, spec.form, {.bytes = spec_.memory}), history_(spec.shape) {
  spec_.form = spec.is_dual() ? CovarianceForm::kDual : CovarianceForm::kPrimal;
  if (!spec.is_dual() && !policy_.primal_fits(0)) {
    throw_error<InvalidArgument>(
        "The inverse covariance of {} parameters needs {} of memory with its factor, and {} may be used: "
        "choose {} or a smaller network.",
        spec.shape.parameters(), readable_bytes(primal_bytes({spec.shape}).all()),
        readable_bytes(static_cast<double>(spec_.memory)),
        spec.covariance == Covariance::kFull ? "the dual form" : "the diagonal covariance");
  }
  form_ = made(spec_.form);
}

std::unique_ptr<FullForm> FullPosterior::made(CovarianceForm form) const {
  return make_full_form(form, spec_.shape, spec_.lambda, spec_.scale,
                        spec_.covariance == Covariance::kDiagonalOfInverse);
}

FullPosterior::FullPosterior(const FullPosterior& other)
    : Posterior(other),
      policy_(other.policy_),
      history_(other.history_),
      form_(other.form_->freeze()),
      rebuilds_(other.rebuilds_) {}

std::shared_ptr<const Posterior> FullPosterior::freeze() const {
  return std::shared_ptr<const Posterior>(new FullPosterior(*this));
}

WidthHealth FullPosterior::widths(ExecutionContext& context, TangentFactors docs,
                                  std::span<double> width_sq) const {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  return form_->widths(context, history_, docs, width_sq);
}

void FullPosterior::width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  WidthHealth health = form_->widths_for_update(context, history_, docs, width_sq);
  if (health.lost > 0) {
    rebuild(context, kIndefinite);
    health = form_->widths_for_update(context, history_, docs, width_sq);
    if (health.lost > 0) throw_lost_precision(name(), kIndefinite);
  }
  negative_widths_ += health.negative;
}

void FullPosterior::observe(ExecutionContext& context, TangentFactors docs,
                            std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  require_information(spec_.shape, spec_.lambda, spec_.scale, docs, pairs);
  const auto added = std::ssize(pairs);
  Earlier earlier{history_.pairs(), policy_.excess(), monitor_.unchecked(), rebuilds_, spec_.form, nullptr};
  // Where observing can fail halfway it goes back to a copy. That of a dual form costs nothing.
  const bool may_fail_halfway =
      added > FullForm::kObservedAtOnce || monitor_.will_be_due(added, earlier.pairs + added);
  if (spec_.is_dual() ||
      (may_fail_halfway && policy_.fits(2.0 * static_cast<double>(bytes()), earlier.pairs)))
    earlier.form = form_->freeze();
  try {
    take_in(context, docs, pairs, earlier);
  } catch (...) {
    go_back(context, std::move(earlier), added);
    throw;
  }
}

void FullPosterior::take_in(ExecutionContext& context, TangentFactors docs,
                            std::span<const PreferencePair> pairs, Earlier& earlier) {
  const auto added = std::ssize(pairs);
  require_room(added);
  const bool to_primal = spec_.is_dual() && policy_.switches(earlier.pairs, added, docs.docs);
  history_.append(docs, pairs);
  if (to_primal) {
    switch_to_primal(context, earlier);
    return;
  }
  try {
    form_->observe(context, history_, earlier.pairs, docs, pairs);
  } catch (const NumericError& error) {
    rebuild(context, error.what());
  }
  earlier.left = true;
  monitor_.add(added, history_.pairs());
  if (!monitor_.is_due()) return;
  // Nothing keeps more digits than the orthonormal form.
  monitor_.check(
      name(), [&] { return spec_.form == CovarianceForm::kOrthonormal ? 0.0 : measured_drift(context); },
      [&](std::string_view why) { rebuild(context, why); });
}

void FullPosterior::go_back(ExecutionContext& context, Earlier earlier, std::int64_t added) {
  // Without memory for a copy, a covariance that has taken the pairs in keeps them.
  if (earlier.form == nullptr && earlier.left) return;
  history_.truncate(earlier.pairs);
  policy_.set_excess(earlier.excess);
  monitor_.set_unchecked(earlier.unchecked);
  rebuilds_ = earlier.rebuilds;
  spec_.form = earlier.kept;
  if (earlier.form != nullptr) {
    form_ = std::move(earlier.form);
    return;
  }
  // A rebuilt covariance is the same, but not to the bit.
  const bool freed = form_ == nullptr;
  if (freed) form_ = made(CovarianceForm::kDual);
  if (freed || added > FullForm::kObservedAtOnce) form_->rebuild(context, history_);
}

void FullPosterior::require_room(std::int64_t added) const {
  if (spec_.form != CovarianceForm::kOrthonormal) return;
  const std::int64_t pairs = history_.pairs() + added;
  const double needed = orthonormal_bytes({.shape = spec_.shape, .pairs = pairs}).all();
  if (policy_.fits(needed, pairs)) return;
  throw_error<Error>(
      "The covariance of {} pairs of very different scale needs {} of memory, and {} may be used: "
      "normalise the features, or choose the diagonal covariance or fewer rounds.",
      pairs, readable_bytes(needed), readable_bytes(static_cast<double>(spec_.memory)));
}

void FullPosterior::switch_to_primal(ExecutionContext& context, Earlier& earlier) {
  const PosteriorLoad load{.shape = spec_.shape, .pairs = history_.pairs()};
  const double both = primal_bytes(load).all() + static_cast<double>(bytes());
  if (!policy_.fits(both, load.pairs)) {
    // Frees L⁻¹ before A⁻¹ is allocated.
    form_.reset();
    earlier.form.reset();
  }
  auto primal = made(CovarianceForm::kPrimal);
  monitor_.restart();
  policy_.set_excess(0.0);
  try {
    primal->rebuild(context, history_);
    form_ = std::move(primal);
    spec_.form = CovarianceForm::kPrimal;
    log_detail("The covariance switches from {} pairs to {} parameters.", history_.pairs(),
               spec_.shape.parameters());
  } catch (const NumericError& error) {
    primal.reset();
    rebuild(context, error.what(), CovarianceForm::kPrimal);
  }
}

void FullPosterior::rebuild(ExecutionContext& context, std::string_view why, CovarianceForm without_room) {
  const double present = form_ ? static_cast<double>(bytes()) : 0.0;
  const PosteriorLoad load{.shape = spec_.shape, .pairs = history_.pairs()};
  const bool orthonormal = spec_.covariance == Covariance::kFull &&
                           policy_.fits(present + orthonormal_bytes(load).all(), load.pairs);
  log_detail("The covariance of {} pairs is rebuilt{}: {}.", history_.pairs(),
             orthonormal ? " in orthonormal form" : "", why);
  const CovarianceForm kept = orthonormal ? CovarianceForm::kOrthonormal : without_room;
  std::unique_ptr<FullForm> next = made(kept);
  try {
    next->rebuild(context, history_);
  } catch (const NumericError&) {
    throw_lost_precision(name(), kIndefinite);
  }
  form_ = std::move(next);
  spec_.form = kept;
  ++rebuilds_;
  monitor_.restart();
}

double FullPosterior::measured_drift(ExecutionContext& context) const {
  const bool by_diagonal = spec_.covariance == Covariance::kDiagonalOfInverse;
  std::vector<double> gradient(spec_.shape.parameters());
  const auto error_at_largest = [&](std::span<const double> v) {
    return error_along(context, unit_at_largest(v), std::nullopt);
  };
  return measure_drift(
      spec_.checks, spec_.shape.parameters(), history_.pairs(),
      [&](std::span<const double> vector) {
        return by_diagonal ? error_at_largest(vector) : error_along(context, vector, std::nullopt);
      },
      [&](std::int64_t pair) {
        const TangentFactors docs = history_.range(pair, 1);
        const double one = 1.0;
        pair_gradient_sum(context, spec_.shape, docs, std::span(&one, 1), gradient);
        if (by_diagonal) return error_at_largest(gradient);
        std::array<double, 4> width_sq{};
        form_->widths(context, history_, docs, width_sq);
        return error_along(context, gradient, width_sq[1] / spec_.scale);
      });
}

double FullPosterior::error_along(ExecutionContext& context, std::span<const double> v,
                                  std::optional<double> width_sq) const {
  std::vector<double> y(v.size());
  std::vector<double> products(history_.pairs());
  form_->solve(context, history_, v, y);
  pair_gradient_products(context, spec_.shape, history_.all(), y, products);
  const double v_y = std::inner_product(v.begin(), v.end(), y.begin(), 0.0);
  return width_error(width_sq.value_or(v_y), v_y, quadratic_form(spec_.lambda, spec_.scale, y, products));
}

void FullPosterior::save(StateWriter& state) const {
  history_.save(state);
  state.put_text("covariance_form", name_of(spec_.form));
  form_->save(state);
  state.put("covariance_excess", policy_.excess());
  state.put("covariance_unchecked", monitor_.unchecked());
  state.put("covariance_negative_widths", negative_widths_);
  state.put("covariance_rebuilds", rebuilds_);
}

void FullPosterior::load(StateReader& state) {
  ObservedPairs history(spec_.shape);
  history.load(state);
  const std::string name = state.get_text("covariance_form");
  const auto kept = value_named<CovarianceForm>(name).value_or(CovarianceForm::kAuto);
  if (kept == CovarianceForm::kAuto ||
      (kept != CovarianceForm::kPrimal && spec_.covariance != Covariance::kFull))
    state.fail(fmt::format("A {} covariance has no form called '{}'.", name_of(spec_.covariance), name));
  std::unique_ptr<FullForm> form = made(kept);
  form->load(state, history);
  policy_.set_excess(state.get_one<double>("covariance_excess"));
  monitor_.set_unchecked(state.get_one<std::int64_t>("covariance_unchecked"));
  negative_widths_ = state.get_one<std::int64_t>("covariance_negative_widths");
  rebuilds_ = state.get_one<std::int64_t>("covariance_rebuilds");
  history_ = std::move(history);
  form_ = std::move(form);
  spec_.form = kept;
}

bool FormPolicy::switches(std::int64_t pairs, std::int64_t added, std::int64_t docs) {
  excess_ += std::max(0.0, dual_operations(shape_, pairs, docs, kUsualPairs) -
                               primal_operations(shape_, pairs, docs, kUsualPairs));
  const std::int64_t all = pairs + added;
  const double needed = dual_bytes(load(all, added, docs)).all();
  const bool overflows = !fits(needed, all);
  const bool may_switch = form_ == CovarianceForm::kAuto && primal_fits(all);
  if (overflows && !may_switch) {
    throw_error<Error>(
        "The dual covariance of {} pairs needs {} of memory, and {} may be used: choose form = \"primal\" "
        "if {} parameters allow it, the diagonal covariance, or fewer rounds.",
        all, readable_bytes(needed), readable_bytes(std::max(0.0, usable(all))), shape_.parameters());
  }
  return may_switch && (overflows || excess_ > conversion_operations(shape_, all));
}

bool FormPolicy::primal_fits(std::int64_t pairs) const {
  return fits(primal_bytes(load(pairs, 1, 0)).all(), pairs);
}

}  // namespace olrank
