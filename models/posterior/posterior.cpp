#include "models/posterior/posterior.h"

#include <fmt/format.h>

#include "core/error.h"
#include "models/posterior/diagonal_posterior.h"
#include "models/posterior/full_posterior.h"
#include "models/posterior/no_posterior.h"

namespace olrank {

PosteriorSpec posterior_spec(const NetworkShape& shape, const PosteriorSettings& settings,
                             ProtocolName protocol) {
  PosteriorSpec spec;
  spec.shape = shape;
  spec.covariance = settings.covariance;
  spec.form = settings.form;
  spec.lambda = settings.lambda;
  spec.scale = protocol == ProtocolName::kPaper ? 1.0 / static_cast<double>(shape.width) : 1.0;
  return spec;
}

std::unique_ptr<Posterior> make_posterior(const PosteriorSpec& spec) {
  if (!(spec.lambda > 0.0)) {
    throw InvalidArgument(
        fmt::format("lambda must be above 0, not {}: without it the covariance of unseen "
                    "directions is infinite.",
                    spec.lambda));
  }
  switch (spec.covariance) {
    case Covariance::kFull:
    case Covariance::kDiagonalOfInverse:
      return std::make_unique<FullPosterior>(spec);
    case Covariance::kDiagonal:
      return std::make_unique<DiagonalPosterior>(spec);
    case Covariance::kNone:
      return std::make_unique<NoPosterior>();
  }
  throw InvalidArgument("There is no such covariance.");
}

}  // namespace olrank
