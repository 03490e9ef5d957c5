#include "models/neural/ranker_device.h"

#include <fmt/format.h>

#include <limits>

#include "core/device/most_layers.h"
#include "core/online/retraining.h"
#include "models/neural/network_learner.h"
#include "models/neural/ranker_network.h"
#include "models/posterior/posterior.h"

namespace olrank {

std::optional<int> libtorch_gpu(const RankerDevice* device) {
  return device == nullptr ? std::nullopt : device->libtorch_number(device->gpu);
}

FormPolicy::Room room_on_device(const RankerSettings& settings, const ModelSize& size,
                                const RankerDevice& device, bool grows_in_place) {
  constexpr double kFloatBytes = sizeof(float);
  constexpr double kDoubleBytes = sizeof(double);
  constexpr double kWhileDoubling = 3.0;  // the old array and one of twice the size
  constexpr double kTermBytes = 128.0;    // of a document's terms and their index
  constexpr double kPartialSums = 264.0;  // of a gradient, at most so many
  const auto p = static_cast<double>(size.parameters());
  const auto most_docs = static_cast<double>(device.most_docs);
  const double of_shown = static_cast<double>(size.inputs + 2 * size.tangents.factors()) * kFloatBytes;
  const double of_doc = static_cast<double>(size.inputs + size.arrays_of_pass()) * kFloatBytes;
  FormPolicy::Room room;
  room.bytes = covariance_memory(settings.posterior, device.memory);
  room.home = grows_in_place ? PosteriorHome::kDevice : PosteriorHome::kOlderDevice;
  room.most_docs = device.most_docs;
  room.beside = p * (kPartialSums + 8.0) * kDoubleBytes + most_docs * (of_shown + most_docs * kDoubleBytes);
  if (const RetrainingRule rule = retraining_rule(settings.trainer); rule.replays()) {
    constexpr double kParameters = 3.0;  // of θ at the reference, its gradient, and a sample's linear term
    const auto sampled_docs = 2.0 * static_cast<double>(rule.replay);
    room.beside += kParameters * p * kDoubleBytes + sampled_docs * (of_doc + kTermBytes);
  }
  room.beside_per_doc = kWhileDoubling * (of_doc + kTermBytes);
  room.docs = device.train.docs > 0 ? device.train.docs : std::numeric_limits<std::int64_t>::max();
  return room;
}

std::optional<std::string> why_not_on_device(const RankerSettings& settings) {
  const RankerKindRow& row = row_of(settings.kind);
  if (!row.on_device) return fmt::format("'{}' has no device implementation", row.name);
  if (!settings.start_from.empty()) return "rankers that start from a model run on the CPU";
  if (settings.network.network == NetworkForm::kModule) {
    // Their history and its schedules stay on the host.
    if (row.evidence == OrderEvidence::kWidths && settings.posterior.covariance != Covariance::kNone)
      return "the covariance of a module lives on the CPU";
    return std::nullopt;
  }
  if (settings.network.depth > kMostDeviceLayers)
    return fmt::format("the kernels support at most {} layers", kMostDeviceLayers);
  if (row.weighs_by_ndcg && retraining_rule(settings.trainer).retrain == Retrain::kGrowth)
    return fmt::format("'{}' with retrain = \"growth\" has no device implementation", row.name);
  if (settings.fair.fair == Fairness::kFairCo) return "fair = \"fairco\" has no device implementation";
  if (row.evidence == OrderEvidence::kWidths && settings.posterior.observe_at == ObserveAt::kAfter)
    return "observe_at = \"after\" has no device implementation";
  if (row.evidence == OrderEvidence::kWidths &&
      settings.posterior.covariance == Covariance::kDiagonalOfInverse)
    return "covariance = \"diagonal-of-inverse\" has no device implementation";
  if (follows_posterior(settings.explore.list))
    return fmt::format("list = \"{}\" has no device implementation", name_of(settings.explore.list));
  if (row.is_ensemble() && settings.posterior.prior_noise)
    return "prior_noise has no device implementation";
  return std::nullopt;
}

}  // namespace olrank
