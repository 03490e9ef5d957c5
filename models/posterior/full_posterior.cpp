#include "models/posterior/full_posterior.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/ops/diagonal_covariance.h"
#include "core/ops/gradient_products.h"
#include "core/random/rng_stream.h"
#include "core/runtime/log.h"
#include "core/text/byte_size.h"
#include "models/posterior/dual_form.h"
#include "models/posterior/posterior_plan.h"

namespace olrank {
namespace {

constexpr int kProbes = 2;

/// Bytes of A⁻¹ and, while it is made, of its factor.
double primal_bytes(const NetworkShape& shape) {
  return 1.5 * primal_cost(shape, 0, 0, 0).bytes;
}

}  // namespace

FullPosterior::FullPosterior(const PosteriorSpec& spec)
    : spec_(spec),
      memory_(spec.memory > 0 ? spec.memory : available_memory()),
      history_(spec.shape),
      by_pairs_(spec.covariance == Covariance::kFull && spec.form != CovarianceForm::kPrimal) {
  if (by_pairs_) {
    form_ = std::make_unique<DualForm>(spec.shape, spec.lambda, spec.scale);
    return;
  }
  if (!primal_fits()) {
    const std::string_view instead = spec.covariance == Covariance::kFull
                                         ? "choose the dual form or a smaller network"
                                         : "choose the diagonal covariance or a smaller network";
    throw InvalidArgument(
        fmt::format("The inverse covariance of {} parameters takes {} of memory with its factor, and {} "
                    "may be used: {}.",
                    spec.shape.parameters(), readable_bytes(primal_bytes(spec.shape)),
                    readable_bytes(static_cast<double>(memory_)), instead));
  }
  form_ = std::make_unique<PrimalForm>(spec.shape, spec.lambda, spec.scale);
}

std::string_view FullPosterior::form() const {
  return spec_.covariance == Covariance::kDiagonalOfInverse ? "diagonal-of-inverse" : form_->name();
}

bool FullPosterior::primal_fits() const {
  // By what the pairs may have set aside: a run that was resumed decides as one that was not.
  return primal_bytes(spec_.shape) + 2.0 * static_cast<double>(history_.bytes()) <=
         static_cast<double>(memory_);
}

FullPosterior::FullPosterior(const FullPosterior& other)
    : spec_(other.spec_),
      memory_(other.memory_),
      history_(other.history_),
      form_(other.form_->freeze()),
      by_pairs_(other.by_pairs_),
      excess_(other.excess_),
      unchecked_(other.unchecked_),
      negative_widths_(other.negative_widths_),
      rebuilds_(other.rebuilds_) {}

std::shared_ptr<const Posterior> FullPosterior::freeze() const {
  return std::shared_ptr<const Posterior>(new FullPosterior(*this));
}

WidthHealth FullPosterior::widths_of_diagonal(ExecutionContext& context, TangentFactors docs,
                                              std::span<double> width_sq) const {
  std::vector<double> diagonal(static_cast<std::size_t>(spec_.shape.parameters()));
  static_cast<const PrimalForm&>(*form_).diagonal(diagonal);
  diagonal_gram(context, spec_.shape, docs, spec_.scale, diagonal, width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

WidthHealth FullPosterior::widths(ExecutionContext& context, TangentFactors docs,
                                  std::span<double> width_sq) const {
  assert(static_cast<std::int64_t>(width_sq.size()) == docs.docs * docs.docs);
  if (spec_.covariance == Covariance::kDiagonalOfInverse)
    return widths_of_diagonal(context, docs, width_sq);
  form_->gram(context, history_, docs, width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

WidthHealth FullPosterior::look_at(ExecutionContext& context, TangentFactors docs,
                                   std::span<double> width_sq) {
  if (spec_.covariance == Covariance::kDiagonalOfInverse)
    return widths_of_diagonal(context, docs, width_sq);
  form_->look_at(context, history_, docs, width_sq.data());
  return pair_width_sq(context, docs.docs, width_sq.data(), width_sq.data());
}

void FullPosterior::width_sq(ExecutionContext& context, TangentFactors docs, std::span<double> width_sq) {
  assert(static_cast<std::int64_t>(width_sq.size()) == docs.docs * docs.docs);
  WidthHealth health = look_at(context, docs, width_sq);
  if (health.lost > 0) {
    rebuild(context, fmt::format("{} squared widths of {} documents were below zero beyond rounding",
                                 health.lost, docs.docs));
    health = look_at(context, docs, width_sq);
    if (health.lost > 0) fail("Squared widths stay below zero after the covariance was made anew");
  }
  negative_widths_ += health.negative;
}

void FullPosterior::observe(ExecutionContext& context, TangentFactors docs,
                            std::span<const PreferencePair> pairs) {
  if (pairs.empty()) return;
  const std::int64_t first = history_.pairs();
  if (by_pairs_) {
    const double dual = dual_cost(spec_.shape, first, docs.docs, spec_.usual_pairs).operations;
    const double primal = primal_cost(spec_.shape, first, docs.docs, spec_.usual_pairs).operations;
    excess_ += std::max(0.0, dual - primal);
  }
  history_.append(docs, pairs);
  if (by_pairs_) {
    const bool may_change = spec_.form == CovarianceForm::kAuto && primal_fits();
    const double needed = dual_cost(spec_.shape, history_.pairs(), 0, 0).bytes;
    const bool overflows = needed > static_cast<double>(memory_);
    if (overflows && !may_change) {
      history_.truncate(first);
      throw Error(fmt::format(
          "The covariance of {} pairs takes {} of memory, and {} may be used: choose form = primal if {} "
          "parameters allow it, the diagonal covariance, or fewer rounds.",
          first + static_cast<std::int64_t>(pairs.size()), readable_bytes(needed),
          readable_bytes(static_cast<double>(memory_)), spec_.shape.parameters()));
    }
    if (may_change && (overflows || excess_ > conversion_operations(spec_.shape, history_.pairs()))) {
      go_primal(context);
      return;
    }
  }
  try {
    form_->observe(context, history_, first, docs, pairs);
  } catch (const NumericError& error) {
    rebuild(context, error.what());
  }
  unchecked_ += static_cast<std::int64_t>(pairs.size());
  if (spec_.checks.every > 0 && unchecked_ >= spec_.checks.every) check_drift(context);
}

void FullPosterior::go_primal(ExecutionContext& context) {
  auto primal = std::make_unique<PrimalForm>(spec_.shape, spec_.lambda, spec_.scale);
  primal->rebuild(context, history_);
  form_ = std::move(primal);
  by_pairs_ = false;
  excess_ = 0.0;
  unchecked_ = 0;
  log_detail("The covariance goes over from {} pairs to {} parameters.", history_.pairs(),
             spec_.shape.parameters());
}

void FullPosterior::rebuild(ExecutionContext& context, std::string_view why) {
  log_detail("The covariance of {} pairs is made anew: {}.", history_.pairs(), why);
  ++rebuilds_;
  unchecked_ = 0;
  try {
    form_->rebuild(context, history_);
  } catch (const NumericError& error) {
    fail(error.what());
  }
}

void FullPosterior::check_drift(ExecutionContext& context) {
  unchecked_ = 0;
  double residual = drift(context);
  if (residual <= spec_.checks.drift_bound) return;
  rebuild(context, fmt::format("its residual is {:.2g}", residual));
  residual = drift(context);
  if (!(residual <= spec_.checks.drift_bound)) {
    fail(fmt::format("Its residual is {:.2g}, above the bound of {:.2g}, even when it is made anew",
                     residual, spec_.checks.drift_bound));
  }
}

double FullPosterior::drift(ExecutionContext& context) const {
  const auto p = static_cast<std::size_t>(spec_.shape.parameters());
  std::vector<double> probe(p);
  std::vector<double> solution(p);
  std::vector<double> product(p);
  std::vector<double> pairs(static_cast<std::size_t>(history_.pairs()));
  double worst = 0.0;
  for (int number = 0; number < kProbes; ++number) {
    RngStream draws(make_key({.purpose = Purpose::kProbe}), static_cast<std::uint32_t>(history_.pairs()),
                    static_cast<std::uint32_t>(number));
    draws.unit_vector(probe);
    form_->solve(context, history_, probe, solution);
    // A y = λy + s Σ_s g_s (g_s·y), from the factors themselves.
    pair_gradient_products(context, spec_.shape, history_.all(), solution, pairs);
    pair_gradient_sum(context, spec_.shape, history_.all(), pairs, product);
    double residual_sq = 0.0;
    for (std::size_t k = 0; k < p; ++k) {
      const double residual = spec_.lambda * solution[k] + spec_.scale * product[k] - probe[k];
      residual_sq += residual * residual;
    }
    // max() would drop a NaN.
    const double residual = std::sqrt(residual_sq);
    if (!(residual <= worst)) worst = residual;
  }
  return worst;
}

void FullPosterior::fail(std::string_view what) const {
  throw NumericError(fmt::format(
      "The {} covariance of {} pairs has lost its digits at lambda = {}. {}. Choose a larger lambda{}.",
      form(), history_.pairs(), spec_.lambda, what, by_pairs_ ? ", or form = primal" : ""));
}

void FullPosterior::save(StateWriter& state) const {
  history_.save(state);
  state.put_text("covariance_form", form_->name());
  form_->save(state);
  state.put("covariance_excess", excess_);
  state.put("covariance_unchecked", unchecked_);
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
      state.fail(fmt::format("The covariance is of {} pairs and the history of {}.", dual->pairs(),
                             history.pairs()));
    }
    form = std::move(dual);
  } else if (name == "primal") {
    form = std::make_unique<PrimalForm>(spec_.shape, spec_.lambda, spec_.scale);
    form->load(state);
  } else {
    state.fail(fmt::format("A {} covariance has no form called '{}'.",
                           EnumNames<Covariance>::values[static_cast<std::size_t>(spec_.covariance)].second,
                           name));
  }
  excess_ = state.get_one<double>("covariance_excess");
  unchecked_ = state.get_one<std::int64_t>("covariance_unchecked");
  negative_widths_ = state.get_one<std::int64_t>("covariance_negative_widths");
  rebuilds_ = state.get_one<std::int64_t>("covariance_rebuilds");
  history_ = std::move(history);
  form_ = std::move(form);
  by_pairs_ = name == "dual";
}

}  // namespace olrank
