#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/explore/exploring_list.h"
#include "core/feedback/preference_pairs.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "core/ops/device_network.h"
#include "models/neural/document_history.h"
#include "models/ranker_settings.h"

namespace olrank {

/// Where a ranker on a device lives, and the documents that it will be asked about.
struct DeviceHome {
  int device = 0;
  FeatureMatrix train;         // has to outlive the ranker, as does `eval_docs`
  std::int64_t most_docs = 0;  // of a query
  FeatureMatrix eval_docs;
  std::int64_t memory = 0;  // bytes that the covariance may take on the device
};

/// A confident network or an ensemble whose rounds are computed on a device: ConfidentNetwork and
/// P2NeurRank of the CPU, with the same coins. Here on the host are lists, which document and pair of the
/// history is which, and the choice of the covariance's form.
class DeviceRanker : public OnlineRanker {
 public:
  using MakeNetwork = std::function<std::unique_ptr<DeviceNetwork>(const DeviceNetworkSpec&)>;

  DeviceRanker(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
               std::int64_t cutoff, const DeviceHome& home,
               const MakeNetwork& make_network = make_device_network);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void describe(const QueryDocs& query, bool full, RoundDetail& detail) override;
  void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const override;
  bool begin_scores(FeatureMatrix docs) override;
  bool scores_ready() override { return network_->scores_ready(); }
  void finish_scores(std::span<float> scores) override { network_->finish_scores(scores); }
  std::int64_t parameters() const override;
  ModelTensors model() const override;
  std::vector<RankerFigure> figures(ExecutionContext& context) const override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  DeviceQuery place_of(const QueryDocs& query) const;
  DeviceLesson lesson_of(const Feedback& feedback, std::int64_t known_docs);
  bool has_shadow() const;
  bool trains_by_batches() const { return settings_.trainer.loss == LossForm::kMean; }
  /// order_: the epochs of every member.
  void order_batches(std::uint32_t round);
  /// What the shadow says of them: width_ratios_, and the decisions that it would turn.
  Tally compare_with_shadow(ExecutionContext& context, std::span<const std::int32_t> shown);
  void choose_form();
  std::vector<std::vector<float>> member_thetas() const;

  RankerSettings settings_;
  std::int64_t cutoff_;
  DeviceHome home_;
  PhiloxKey batch_key_;
  std::vector<PhiloxKey> batch_keys_;  // of members, where training goes by mini-batches
  NetworkShape shape_;
  std::int64_t members_;
  DocumentHistory history_;
  std::unique_ptr<DeviceNetwork> network_;
  std::int64_t taught_ = 0;  // pairs that the covariance has taken in
  double excess_ = 0.0;      // operations of the dual form beyond what the primal one takes

  ExploringList list_;
  OrderBits orders_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_pairs_;
  std::vector<DeviceLesson::Term> terms_;
  std::vector<std::int32_t> order_;
  std::vector<std::int32_t> epoch_order_;
  std::vector<double> steps_;
  // Of the list shown last, where there is a shadow.
  std::vector<double> shown_scores_;
  std::vector<double> own_sq_;
  std::vector<double> exact_sq_;
  std::vector<double> width_ratios_;
  bool described_ = false;  // the round is being traced, so that its step is waited for
};

/// Why a ranker cannot be computed on a device, as a clause; nothing where it can.
std::optional<std::string> why_not_on_device(const RankerSettings& settings);

}  // namespace olrank
