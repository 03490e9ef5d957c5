#include "models/posterior/full_posterior.h"

#include <fmt/format.h>

#include <cassert>
#include <vector>

#include "core/error.h"
#include "core/learning/numeric_errors.h"
#include "core/ops/diagonal_covariance.h"
#include "core/ops/gradient_products.h"
#include "core/runtime/log.h"
#include "core/text/byte_size.h"
#include "models/posterior/dual_form.h"
#include "models/posterior/posterior_plan.h"

namespace olrank {

FullPosterior::FullPosterior(const PosteriorSpec& spec)
    : spec_(spec),
      memory_(spec.memory > 0 ? spec.memory : available_memory()),
      policy_(spec.shape, spec.form, memory_),
      monitor_(spec.checks),
      history_(spec.shape),
      is_dual_(spec.covariance == Covariance::kFull && spec.form != CovarianceForm::kPrimal) {
  if (is_dual_) {
    form_ = std::make_unique<DualForm>(spec.shape, spec.lambda, spec.scale);
    return;
  }
  if (!policy_.primal_fits(0)) {
    throw InvalidArgument(fmt::format(
        "The inverse covariance of {} parameters needs {} of memory with its factor, and {} may be "
        "used: choose {} or a smaller network.",
        spec.shape.parameters(), readable_bytes(primal_peak_bytes(spec.shape, 0)),
        readable_bytes(static_cast<double>(memory_)),
        spec.covariance == Covariance::kFull ? "the dual form" : "the diagonal covariance"));
  }
  form_ = std::make_unique<PrimalForm>(spec.shape, spec.lambda, spec.scale);
}

std::string_view FullPosterior::form() const {
  return spec_.covariance == Covariance::kDiagonalOfInverse ? "diagonal-of-inverse" : form_->name();
}

FullPosterior::FullPosterior(const FullPosterior& other)
    : spec_(other.spec_),
      memory_(other.memory_),
      policy_(other.policy_),
      monitor_(other.monitor_),
      history_(other.history_),
      form_(other.form_->freeze()),
      is_dual_(other.is_dual_),
      negative_widths_(other.negative_widths_),
      rebuilds_(other.rebuilds_) {}

std::shared_ptr<const Posterior> FullPosterior::freeze() const {
  return std::shared_ptr<const Posterior>(new FullPosterior(*this));
}

WidthHealth FullPosterior::widths_of_diagonal(ExecutionContext& context, TangentFactors docs,
                                              std::span<double> width_sq) const {
  std::vector<double> diagonal(spec_.shape.parameters());
  static_cast<const PrimalForm&>(*form_).diagonal(diagonal);
  diagonal_gram(context, spec_.shape, docs, spec_.scale, diagonal, width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

WidthHealth FullPosterior::widths(ExecutionContext& context, TangentFactors docs,
                                  std::span<double> width_sq) const {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  if (spec_.covariance == Covariance::kDiagonalOfInverse)
    return widths_of_diagonal(context, docs, width_sq);
  form_->gram(context, history_, docs, width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

WidthHealth FullPosterior::widths_for_update(ExecutionContext& context, TangentFactors docs,
                                             std::span<double> width_sq) {
  if (spec_.covariance == Covariance::kDiagonalOfInverse)
    return widths_of_diagonal(context, docs, width_sq);
  form_->gram_for_update(context, history_, docs, width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

void FullPosterior::width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) {
  assert(std::ssize(width_sq) == docs.docs * docs.docs);
  WidthHealth health = widths_for_update(context, docs, width_sq);
  if (health.lost > 0) {
    rebuild(context, kIndefinite);
    health = widths_for_update(context, docs, width_sq);
    if (health.lost > 0) throw_lost_precision(name(), kIndefinite);
  }
  negative_widths_ += health.negative;
}

void FullPosterior::observe(ExecutionContext& context, TangentFactors docs,
                            std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  const std::int64_t first = history_.pairs();
  const auto added = std::ssize(pairs);
  const bool to_primal = is_dual_ && policy_.switches(first, added, docs.docs);
  history_.append(docs, pairs);
  if (to_primal) {
    switch_to_primal(context);
    return;
  }
  try {
    form_->observe(context, history_, first, docs, pairs);
  } catch (const NumericError& error) {
    rebuild(context, error.what());
  }
  monitor_.add(added);
  if (!monitor_.is_due()) return;
  monitor_.check(
      name(), [&] { return drift(context); }, [&](std::string_view why) { rebuild(context, why); });
}

void FullPosterior::switch_to_primal(ExecutionContext& context) {
  form_.reset();  // frees L⁻¹ before A⁻¹ is allocated
  is_dual_ = false;
  form_ = std::make_unique<PrimalForm>(spec_.shape, spec_.lambda, spec_.scale);
  rebuild_form(context);
  policy_.set_excess(0.0);
  log_detail("The covariance switches from {} pairs to {} parameters.", history_.pairs(),
             spec_.shape.parameters());
}

void FullPosterior::rebuild(ExecutionContext& context, std::string_view why) {
  log_detail("The covariance of {} pairs is rebuilt: {}.", history_.pairs(), why);
  ++rebuilds_;
  rebuild_form(context);
}

void FullPosterior::rebuild_form(ExecutionContext& context) {
  monitor_.restart();
  try {
    form_->rebuild(context, history_);
  } catch (const NumericError&) {
    throw_lost_precision(name(), kIndefinite);
  }
}

double FullPosterior::drift(ExecutionContext& context) const {
  const auto p = static_cast<std::size_t>(spec_.shape.parameters());
  std::vector<double> solution(p);
  std::vector<double> product(p);
  std::vector<double> pairs(history_.pairs());
  return worst_residual(spec_.checks, spec_.shape.parameters(), history_.pairs(),
                        [&](std::span<const double> probe) {
                          form_->solve(context, history_, probe, solution);
                          // Σ_s g_s (g_s·y), from the factors themselves.
                          pair_gradient_products(context, spec_.shape, history_.all(), solution, pairs);
                          pair_gradient_sum(context, spec_.shape, history_.all(), pairs, product);
                          return residual_norm(spec_.lambda, spec_.scale, product, solution, probe);
                        });
}

void FullPosterior::save(StateWriter& state) const {
  history_.save(state);
  state.put_text("covariance_form", form_->name());
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
  std::unique_ptr<FullForm> form;
  if (name == "dual" && spec_.covariance == Covariance::kFull) {
    auto dual = std::make_unique<DualForm>(spec_.shape, spec_.lambda, spec_.scale);
    dual->load(state);
    if (dual->pairs() != history.pairs()) {
      state.fail(fmt::format("The covariance has {} pairs and the history has {}.", dual->pairs(),
                             history.pairs()));
    }
    form = std::move(dual);
  } else if (name == "primal") {
    form = std::make_unique<PrimalForm>(spec_.shape, spec_.lambda, spec_.scale);
    form->load(state);
  } else {
    state.fail(fmt::format("A {} covariance has no form called '{}'.", name_of(spec_.covariance), name));
  }
  policy_.set_excess(state.get_one<double>("covariance_excess"));
  monitor_.set_unchecked(state.get_one<std::int64_t>("covariance_unchecked"));
  negative_widths_ = state.get_one<std::int64_t>("covariance_negative_widths");
  rebuilds_ = state.get_one<std::int64_t>("covariance_rebuilds");
  history_ = std::move(history);
  form_ = std::move(form);
  is_dual_ = name == "dual";
}

}  // namespace olrank
