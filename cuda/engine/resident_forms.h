#pragma once

#include <memory>

#include "cuda/engine/resident_posterior.h"

// The covariances that keep no history.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The diagonal of A alone, which nothing can make drift.
std::unique_ptr<ResidentPosterior> make_resident_diagonal(const PosteriorSpec& spec, Stream stream);

/// A = λI + s Σ P g gᵀ P with the projection P on the span of a dictionary of at most spec.budget observed
/// pairs: models/posterior/inducing_posterior.h, whose decisions it makes.
std::unique_ptr<ResidentPosterior> make_resident_inducing(const PosteriorSpec& spec, Products& products);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
