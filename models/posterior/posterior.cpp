#include "models/posterior/posterior.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/runtime/execution_context.h"
#include "models/posterior/diagonal_posterior.h"
#include "models/posterior/full_posterior.h"
#include "models/posterior/inducing_posterior.h"
#include "models/posterior/no_posterior.h"

namespace olrank {

std::int64_t covariance_memory(const PosteriorSettings& settings, std::int64_t memory) {
  return settings.has_shadow() && settings.covariance == Covariance::kDiagonalOfInverse ? memory / 2
                                                                                        : memory;
}

Posterior::Posterior(const PosteriorSpec& spec) : spec_(spec), monitor_(spec.checks) {
  if (spec_.memory <= 0) spec_.memory = available_memory();
}

double Posterior::drift(ExecutionContext& context) const {
  const double drift = measured_drift(context);
  monitor_.warn(name(), drift);
  return drift;
}

std::unique_ptr<Posterior> make_posterior(const PosteriorSpec& spec) {
  if (!(spec.lambda > 0.0)) {
    throw InvalidArgument(fmt::format(
        "lambda must be greater than 0, not {}: otherwise the covariance of unseen directions is infinite.",
        spec.lambda));
  }
  switch (spec.covariance) {
    case Covariance::kFull:
    case Covariance::kDiagonalOfInverse:
      return std::make_unique<FullPosterior>(spec);
    case Covariance::kDiagonal:
      return std::make_unique<DiagonalPosterior>(spec);
    case Covariance::kInducing:
      return std::make_unique<InducingPosterior>(spec);
    case Covariance::kNone:
      return std::make_unique<NoPosterior>(spec);
  }
  throw InvalidArgument("The covariance has an unknown structure.");
}

}  // namespace olrank
