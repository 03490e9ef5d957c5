#pragma once

#include <memory>

#include "cuda/engine/resident_posterior.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Blocks of the units of the layers from `first_layer` on; parameters of other layers count as known. No
/// pairs are kept, so that its memory does not grow, and nothing can be rebuilt: see
/// models/posterior/block_posterior.h.
std::unique_ptr<ResidentPosterior> make_block_posterior(const ResidentPosteriorSpec& spec,
                                                        std::int64_t first_layer, std::string_view form,
                                                        Stream stream);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
