#pragma once

#include <cstdint>

#include "core/ops/pair_training.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Which terms touch a document, in order of the terms: so that a document's derivative is a sum of its
/// own, without atomics and always in the same order.
struct PairIncidence {
  std::int32_t* offsets = nullptr;  // [docs + 1]
  std::int32_t* ends = nullptr;     // [2 · terms]: twice the term, plus 1 where the document is its second
};

/// 32-bit words of workspace that find_incidence() takes.
std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms);

/// For terms among `docs` documents; once whenever terms were added. A term whose first document is −1 is
/// padding.
void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
