#pragma once

#include <memory>

#include "cuda/engine/resident_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A = λI + s Σ P g gᵀ P with the projection P on the span of a dictionary of at most spec.budget observed
/// pairs: models/posterior/inducing_posterior.h, whose decisions it makes.
std::unique_ptr<ResidentPosterior> make_inducing_posterior(const ResidentPosteriorSpec& spec,
                                                           Products& products);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
