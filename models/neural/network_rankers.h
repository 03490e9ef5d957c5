#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/data/dataset.h"
#include "core/device/visible_gpus.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/online/retraining.h"
#include "models/neural/document_history.h"
#include "models/posterior/full_posterior.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

class DeviceBatch;

/// olRankNet, and olLambdaRank by the kind in the settings, ReLU networks with certain orders: Jia, Wang,
/// "Learning neural ranking models online from implicit user feedback", WWW 2022. The confidence of an
/// order is the Mahalanobis width of the difference of two tangent gradients, under the covariance of those
/// of all observed pairs.
std::unique_ptr<OnlineRanker> make_confident_network(const RankerRequest& request);

void set_olranknet_defaults(RankerSettings& settings, const DefaultsContext& context);

/// P²NeurRank, networks that vote: Jia, Wang, "Scalable exploration for neural online learning to rank with
/// perturbed feedback", SIGIR 2022. Each member starts from its own θ₀; an order is certain when all
/// members agree; the ensemble's score is the mean of its members'.
std::unique_ptr<OnlineRanker> make_p2neurrank(const RankerRequest& request);

void set_p2neurrank_defaults(RankerSettings& settings, const DefaultsContext& context);

struct ModelSize;

/// The device that a ranker runs on, its memory, and the documents that the ranker will rank and score.
/// Networks in closed form share the device's copy of these documents. Documents of other queries, and of
/// all where `train` is empty, go to the device with each call.
struct RankerDevice {
  int gpu = 0;                 // as CUDA numbers the visible ones
  FeatureMatrix train;         // has to outlive the ranker, as does `eval_docs`
  std::int64_t most_docs = 0;  // of a query
  FeatureMatrix eval_docs;
  std::int64_t memory = 0;  // bytes that the ranker may take on the device, next to these documents
  std::shared_ptr<DeviceBatch> batch = {};  // of the trials at once on this GPU

  // Where LibTorch computes modules.
  std::function<std::optional<int>(int gpu)> libtorch_number = libtorch_number_of;
};

/// The GPU on which LibTorch computes the modules of a ranker; none without a device.
std::optional<int> libtorch_gpu(const RankerDevice* device);

/// Returns what a covariance may take on the device, next to the network, a query's view, the history and
/// its training, whose arrays double.
FormPolicy::Room room_on_device(const RankerSettings& settings, const ModelSize& size,
                                const RankerDevice& device, bool grows_in_place);

/// Why a ranker cannot run on a device, as a clause; nothing if it can.
std::optional<std::string> why_not_on_device(const RankerSettings& settings);

/// When to train on the whole history. Mini-batches go over every pair, so only full batches follow a
/// schedule.
RetrainingRule retraining_rule(const TrainerSettings& trainer);
/// Tells what a network's history keeps, for models that score documents one by one or by lists.
HistoryContent history_content(const RankerSettings& settings, bool reads_lists = false);
/// The state of a schedule, and the round of the latest training on the whole history; nothing where every
/// round is one.
void schedule_fields(StateFields& state, RetrainingSchedule& schedule, std::uint32_t& noise_round);

/// Networks that are trained after each round. Members start at `first_thetas` where there are any, else at
/// drawn θ₀.
std::unique_ptr<ModelLearner> make_network_learner(std::shared_ptr<const TangentModel> model,
                                                   const RankerSettings& settings, const TrialKeys& keys,
                                                   const std::optional<EnsembleSpec>& ensemble,
                                                   MemberThetas first_thetas);

}  // namespace olrank
