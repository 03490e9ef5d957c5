#include "cuda/ops/pair_incidence.h"

#include "cuda/ops/stable_groups.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Item 2t is the first document of term t, item 2t + 1 its second.
struct DocOfEnd {
  const PairTerm* terms;

  __device__ std::int32_t operator()(std::int64_t item) const {
    const PairTerm& term = terms[item / 2];
    if (term.first < 0) return -1;
    return item % 2 == 0 ? term.first : term.second;
  }
};

}  // namespace

std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms) {
  return docs + 2 * terms;
}

void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence) {
  group_stably(stream, DocOfEnd{terms}, 2 * count, docs, workspace, incidence.offsets, incidence.ends);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
