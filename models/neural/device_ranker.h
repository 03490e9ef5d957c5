#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/device/device_network.h"
#include "core/feedback/preference_pairs.h"
#include "core/online/online_ranker.h"
#include "core/online/retraining.h"
#include "models/neural/document_history.h"
#include "models/neural/network_rankers.h"
#include "models/neural/training_sample.h"
#include "models/posterior/full_posterior.h"
#include "models/skeleton/certain_order_ranker.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A confident network or an ensemble whose rounds run on a device, with the draws of its CPU counterpart.
/// The host makes the lists, indexes the documents and pairs of the history, and applies the FormPolicy.
class DeviceRanker : public OnlineRanker {
 public:
  using MakeNetwork = std::function<std::unique_ptr<DeviceNetwork>(const DeviceNetworkSpec&)>;

  DeviceRanker(std::int64_t features, const RankerSettings& settings, const TrialKeys& keys,
               std::int64_t cutoff, const RankerDevice& device,
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
  bool makes_lists() const override { return true; }
  void make_lists(ExecutionContext& context, std::span<ListRequest> requests) override;
  void fields(StateFields& state) override;
  /// Throws an Error: no other process makes its lists.
  void save_for_lists(StateWriter& state) const override;

 private:
  void make_some_lists(std::span<ListRequest> requests);
  void make_list(const DeviceScores& found, const RankingTask& task, Ranking& ranking) const;
  DeviceQuery place_of(const QueryDocs& query) const;
  std::span<const std::int64_t> places_of(const QueryDocs& query, std::span<const std::int64_t> numbers);
  DeviceUpdate update_of(const Feedback& feedback, std::int64_t known_docs);
  /// Chooses what the round trains on and from where, for the update.
  void choose_extent(DeviceUpdate& update);
  void teach(const DeviceUpdate& update);
  /// Calls what may wait for the latest training. If that was on the whole history and has failed, the next
  /// one is, too: samples train from where it ends.
  template <typename Call>
  auto validating(const Call& call);
  void require_whole() const;
  bool trains_without_pairs() const;
  bool trains_by_batches() const { return settings_.trainer.loss == LossForm::kMean; }
  /// Fills start_ with where a training on the whole history starts, if not where it is.
  void choose_start(std::uint32_t round);
  /// Fills order_ with the epochs of every member.
  void order_batches(std::uint32_t round);
  std::vector<std::vector<float>> member_thetas() const;

  RankerSettings settings_;
  RankerDevice device_;
  TrialKeys keys_;
  PhiloxKey batch_key_;
  std::vector<PhiloxKey> batch_keys_;    // of members, where training goes by mini-batches
  std::vector<PhiloxKey> restart_keys_;  // of members
  NetworkShape shape_;
  DocumentHistory history_;
  RetrainingSchedule schedule_;
  std::uint32_t noise_round_ = 0;                             // of the latest training on the whole history
  TrainingExtent trained_extent_ = TrainingExtent::kNothing;  // of the latest round
  PhiloxKey replay_key_;
  bool has_shadow_ = false;
  TrainingSample sample_{false};
  std::unique_ptr<DeviceSeat> seat_;  // in which the network works
  std::unique_ptr<DeviceNetwork> network_;
  std::int64_t observed_pairs_ = 0;  // by the covariance
  FormPolicy policy_;

  CertainList list_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_;
  std::vector<DeviceQuery> asked_;
  std::vector<DeviceUpdate::Term> terms_;
  std::vector<std::int64_t> new_docs_;      // places in a query that was handed over
  std::vector<std::int64_t> sampled_rows_;  // of the history
  std::vector<float> start_;
  std::vector<std::int32_t> order_;
  std::vector<std::int32_t> epoch_order_;
  std::vector<double> steps_;
  std::vector<double> width_ratios_;  // of the latest list, with a shadow
  bool broken_ = false;               // an update did not reach the device
  bool described_ = false;            // the round is traced: learn() waits for its step
};

}  // namespace olrank
