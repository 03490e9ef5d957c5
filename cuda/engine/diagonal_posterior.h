#pragma once

#include <memory>

#include "cuda/engine/resident_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The diagonal of A alone, which nothing can make drift.
std::unique_ptr<ResidentPosterior> make_diagonal_posterior(const ResidentPosteriorSpec& spec,
                                                           Stream stream);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
