#include "models/neural/network_rankers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "core/device/network_spec.h"
#include "core/error.h"
#include "core/math/pair_loss.h"
#include "models/neural/ranker_network.h"
#include "models/posterior/posterior.h"
#include "models/skeleton/certain_order_ranker.h"

namespace olrank {
namespace {

/// How far rounding can move a difference of scores.
double score_rounding(std::span<const float> magnitudes) {
  float largest = 0.0F;
  for (const float magnitude : magnitudes) largest = std::max(largest, magnitude);
  return rounding_of_scores(largest);
}

/// The mean of [members × docs], summed in the order of members.
void mean_over_members(std::span<const float> of_members, std::span<float> mean) {
  const std::size_t members = of_members.size() / std::max<std::size_t>(mean.size(), 1);
  for (std::size_t doc = 0; doc < mean.size(); ++doc) {
    double sum = 0.0;
    for (std::size_t member = 0; member < members; ++member)
      sum += double{of_members[member * mean.size() + doc]};
    mean[doc] = static_cast<float>(sum / static_cast<double>(members));
  }
}

/// Widths of a network: the Mahalanobis width of the difference of two tangent gradients, under the
/// covariance of those of all observed pairs.
class NetworkWidths : public Belief {
 public:
  NetworkWidths(std::shared_ptr<const TangentModel> model, std::unique_ptr<Posterior> posterior)
      : model_(std::move(model)) {
    learning_ = posterior.get();
    posterior_ = std::move(posterior);
  }

  Evidence take_evidence(Scratch& scratch, std::int64_t, std::int64_t docs) const override {
    Evidence evidence;
    evidence.scores = scratch.take<float>(docs);
    evidence.factors = scratch.take<float>(docs * model_->tangent_shape().factors());
    evidence.width_sq = scratch.take<double>(docs * docs);
    return evidence;
  }
  void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
             Evidence& evidence) const override {
    const Scratch::Frame frame(context.scratch());
    const auto magnitudes = context.scratch().take<float>(evidence.scores.size());
    model_->find_factors(context, thetas.front(), docs, evidence.factors, evidence.scores, magnitudes);
    evidence.least_difference = score_rounding(magnitudes);
  }
  void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                  std::span<float> scores) const override {
    model_->score(context, thetas.front(), docs, scores);
  }
  bool has_widths() const override { return true; }
  void measure_widths(ExecutionContext& context, FeatureMatrix docs, Evidence& evidence) const override {
    const WidthHealth health =
        posterior_->widths(context, {evidence.factors.data(), docs.docs}, evidence.width_sq);
    if (health.lost > 0) throw_lost_list_widths(health.lost, docs.docs);
  }
  void measure_and_repair_widths(ExecutionContext& context, FeatureMatrix docs,
                                 Evidence& evidence) override {
    learning_->width_sq(context, {evidence.factors.data(), docs.docs}, evidence.width_sq);
  }
  double log_det() const override { return posterior_->log_det(); }
  bool observes_evidence() const override { return true; }
  void observe(ExecutionContext& context, FeatureMatrix docs, const Evidence& evidence,
               std::span<const PreferencePair> pairs) override {
    learning_->observe(context, {evidence.factors.data(), docs.docs}, pairs);
  }
  std::shared_ptr<const Belief> freeze() const override {
    return std::shared_ptr<const Belief>(new NetworkWidths(model_, posterior_->freeze()));
  }
  ModelTensors model(MemberThetas thetas) const override { return model_->tensors(thetas.front()); }
  std::vector<RankerFigure> figures(ExecutionContext& context) const override {
    return {{"drift", posterior_->drift(context)},
            {"negative_widths", static_cast<double>(posterior_->negative_widths())},
            {"posterior_bytes", static_cast<double>(posterior_->bytes())}};
  }
  void save(StateWriter& state) const override { posterior_->save(state); }
  void load(StateReader& state) override { learning_->load(state); }

 private:
  NetworkWidths(std::shared_ptr<const TangentModel> model, std::shared_ptr<const Posterior> frozen)
      : model_(std::move(model)), posterior_(std::move(frozen)) {}

  std::shared_ptr<const TangentModel> model_;
  std::shared_ptr<const Posterior> posterior_;
  Posterior* learning_ = nullptr;  // *posterior_; null when frozen
};

/// The votes of networks; the ensemble's score is the mean of its members'.
class NetworkVotes : public Belief {
 public:
  explicit NetworkVotes(std::shared_ptr<const TangentModel> model) : model_(std::move(model)) {}

  Evidence take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const override {
    return take_votes(scratch, members, docs);
  }
  void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
             Evidence& evidence) const override {
    const std::size_t count = evidence.scores.size();
    const Scratch::Frame frame(context.scratch());
    const auto magnitudes = context.scratch().take<float>(count);
    evidence.least_difference = 0.0;
    for (std::size_t member = 0; member < thetas.size(); ++member) {
      model_->score_with_magnitudes(context, thetas[member], docs,
                                    evidence.member_scores.subspan(member * count, count), magnitudes);
      evidence.least_difference = std::max(evidence.least_difference, score_rounding(magnitudes));
    }
    mean_over_members(evidence.member_scores, evidence.scores);
  }
  void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                  std::span<float> scores) const override {
    std::vector<float> of_member(scores.size());
    std::vector<double> sums(scores.size());
    for (const auto& theta : thetas) {
      model_->score(context, theta, docs, of_member);
      for (std::size_t doc = 0; doc < sums.size(); ++doc) sums[doc] += double{of_member[doc]};
    }
    for (std::size_t doc = 0; doc < sums.size(); ++doc)
      scores[doc] = static_cast<float>(sums[doc] / static_cast<double>(thetas.size()));
  }
  std::shared_ptr<const Belief> freeze() const override { return std::make_shared<NetworkVotes>(model_); }
  ModelTensors model(MemberThetas thetas) const override { return ensemble_tensors(*model_, thetas); }

 private:
  std::shared_ptr<const TangentModel> model_;
};

std::unique_ptr<Posterior> made(PosteriorSpec spec, const RankerRequest& request) {
  const std::int64_t memory = request.dependencies.memory;
  spec.memory = covariance_memory(request.settings.posterior, memory > 0 ? memory : available_memory());
  return make_posterior(spec);
}

}  // namespace

std::unique_ptr<OnlineRanker> make_confident_network(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const std::shared_ptr<const TangentModel> model =
      make_tangent_model(settings.network, request.features, libtorch_gpu(request.dependencies.device));
  const PosteriorSpec spec = posterior_spec(settings, model->tangent_shape());
  std::unique_ptr<WidthShadow> shadow;
  if (spec.has_shadow) shadow = std::make_unique<WidthShadow>(spec.shape, made(spec.shadow(), request));
  auto belief = std::make_unique<NetworkWidths>(model, made(spec, request));
  auto learner =
      make_network_learner(model, settings, request.keys, std::nullopt, request.dependencies.first_thetas);
  return std::make_unique<CertainOrderRanker>(request, std::move(belief), std::move(learner),
                                              std::move(shadow));
}

void set_olranknet_defaults(RankerSettings& settings, const DefaultsContext& context) {
  // Chosen by the committed sweeps: docs/evidence/DEFAULTS.md.
  if (context.protocol == ProtocolName::kPaper) settings.explore.alpha = 0.03;
  if (context.protocol == ProtocolName::kRecommended) set_recommended_network(settings, context.chosen);
}

std::unique_ptr<OnlineRanker> make_p2neurrank(const RankerRequest& request) {
  const RankerSettings& settings = request.settings;
  const EnsembleSpec ensemble{settings.posterior.members, settings.posterior.noise_variance};
  const std::shared_ptr<const TangentModel> model =
      make_tangent_model(settings.network, request.features, libtorch_gpu(request.dependencies.device));
  return std::make_unique<CertainOrderRanker>(
      request, std::make_unique<NetworkVotes>(model),
      make_network_learner(model, settings, request.keys, ensemble, request.dependencies.first_thetas));
}

void set_p2neurrank_defaults(RankerSettings& settings, const DefaultsContext& context) {
  // Chosen by the committed sweeps: docs/evidence/DEFAULTS.md.
  if (context.protocol == ProtocolName::kPaper) settings.posterior.lambda = 1.0;
  if (context.protocol == ProtocolName::kRecommended) set_recommended_network(settings, context.chosen);
}

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
  const Covariance covariance = settings.posterior.covariance;
  if (row.evidence == OrderEvidence::kWidths &&
      (covariance == Covariance::kDiagonalOfInverse || covariance == Covariance::kInducing))
    return fmt::format("covariance = \"{}\" has no device implementation", name_of(covariance));
  if (row.is_ensemble() && settings.posterior.prior_noise)
    return "prior_noise has no device implementation";
  return std::nullopt;
}

}  // namespace olrank
