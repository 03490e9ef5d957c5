#include "cuda/engine/training_kernel_choice.h"

#include <fmt/format.h>

#include <string_view>

#include "core/error.h"
#include "cuda/ops/persistent_training.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Why one kernel cannot take the steps; empty if it can.
std::string_view why_not_in_one_kernel(const DeviceNetworkSpec& spec) {
  if (spec.training.weigh_by_ndcg) return "LambdaRank's weights are computed by other kernels";
  if (spec.shape.depth != 2) return "it trains networks with one hidden layer";
  if (!trains_persistently(spec.shape, spec.members))
    return "the network is too large for the shared memory of a multiprocessor, or the GPU does not start "
           "cooperative kernels";
  return {};
}

}  // namespace

bool trains_in_one_kernel(const DeviceNetworkSpec& spec) {
  if (spec.training.kernel == TrainingKernel::kRecorded) return false;
  const std::string_view why_not = why_not_in_one_kernel(spec);
  if (spec.training.kernel == TrainingKernel::kAuto) return why_not.empty();
  if (!why_not.empty()) {
    throw InvalidArgument(fmt::format(
        "training_kernel = \"persistent\" is impossible for this ranker, as {}: use \"auto\".", why_not));
  }
  return true;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
