#pragma once

#include <cstdint>

#include "core/ops/pair_training.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The terms of each document, in order, so that a document's derivative is one sum in a fixed order,
/// without atomics.
struct PairIncidence {
  std::int32_t* offsets = nullptr;  // [docs + 1]
  std::int32_t* ends =
      nullptr;  // [2 · terms]: twice the term's number, plus 1 if the document is its second
};

/// Workspace of find_incidence(), in 32-bit words.
std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms);

/// Indexes terms among `docs` documents; it must be called again after terms were added. A term whose first
/// document is −1 is padding.
void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
