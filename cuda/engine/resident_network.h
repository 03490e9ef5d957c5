#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/device/device_network.h"
#include "core/runtime/stage_clock.h"
#include "cuda/engine/query_view.h"
#include "cuda/engine/resident_history.h"
#include "cuda/engine/resident_lists.h"
#include "cuda/engine/watched_posterior.h"
#include "cuda/runtime/products.h"
#include "cuda/runtime/profiled_range.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The seconds of the stages of a round on the device.
class Timeline {
 public:
  /// Work started from now on belongs to this stage; to none if the name is empty.
  void mark(Stream stream, std::string_view stage) {
    range_.begin(stage);
    if (used_ == marks_.size()) marks_.emplace_back();
    marks_[used_].stage = stage;
    marks_[used_].event.record(stream);
    ++used_;
  }
  /// Adds the seconds of all stages and resets them; all marks must have passed.
  void collect(StageClock& clock) {
    for (std::size_t i = 0; i + 1 < used_; ++i) {
      if (!marks_[i].stage.empty())
        clock.add(marks_[i].stage, marks_[i + 1].event.seconds_since(marks_[i].event));
    }
    used_ = 0;
  }

 private:
  struct Mark {
    std::string_view stage;
    Event event;
  };
  ProfiledRange range_;
  std::vector<Mark> marks_;
  std::size_t used_ = 0;
};

/// Networks whose rounds run on the device: one stream, and one wait per round, when orders come down.
class ResidentNetwork : public DeviceNetwork {
 public:
  explicit ResidentNetwork(const DeviceNetworkSpec& spec);
  ~ResidentNetwork() override;

  DeviceOrders score_query(DeviceQuery query) override;
  std::span<const DeviceScores> score_queries(std::span<const DeviceQuery> queries) override;
  void describe(std::span<float> scores, std::span<double> width_sq) override;
  DeviceComparison compare(ExecutionContext& context, std::span<const std::int32_t> shown) override;
  void settle() override { finish_training(); }
  void learn(const DeviceUpdate& update) override;
  std::vector<double> steps() override;
  bool has_dual_form() const override;
  bool grows_in_place() const override;
  void switch_to_primal() override;
  DeviceHealth health() override;
  void begin_scores(FeatureMatrix docs) override;
  bool scores_ready() override { return eval_stream_.idle(); }
  void finish_scores(std::span<float> scores) override;
  std::vector<float> theta() override;
  void add_seconds(StageClock& clock) override;
  void save(StateWriter& state) override;
  void load(StateReader& state, const DeviceHistory& history) override;

 private:
  NetworkStack networks() const { return {spec_.shape, theta_.data(), spec_.members}; }
  bool by_vote() const { return spec_.certainty.by_vote; }
  void start_scoring(DeviceQuery query);
  void score(std::span<const DeviceQuery> queries);
  /// The orders of the query that the view is about.
  void decide();
  std::size_t together(std::span<const DeviceQuery> queries) const;
  void bring_for_learning(DeviceQuery query);
  /// Waits until what the latest update started is validated.
  void finish_training();
  /// Validates what the latest fetch brought to the host. Returns whether something was repeated, so that
  /// the fetch has to be repeated too.
  bool validate_or_retry();
  bool validate_training();
  bool validate_posterior();
  /// Negative widths of an answer that is discarded do not count.
  void discard_negative_widths();
  [[noreturn]] void report_divergence();
  /// Moves the parameters to where a training starts.
  void restart(std::span<const float> start);

  DeviceNetworkSpec spec_;
  OwnedStream stream_;
  ProductPlans plans_;
  Products products_;  // in stream_
  SharedDocuments train_;
  SharedDocuments eval_docs_;
  DeviceArray<float> theta_;  // [members × p]
  DeviceArray<CertaintyRule> rule_;
  QueryView view_;
  ResidentHistory history_;
  WatchedPosterior posterior_;
  std::optional<ShadowPosterior> shadow_;
  std::unique_ptr<ResidentTrainer> trainer_;
  DeviceArray<float> theta_before_restart_;  // of the latest training that started elsewhere

  // Evaluation, in its own stream and with a copy of the parameters.
  OwnedStream eval_stream_;
  Products eval_products_;
  Event eval_theta_;  // has been copied
  DeviceArray<float> theta_copy_;
  GrowingArray<float> uploaded_;  // documents other than eval_docs_
  GrowingArray<float> eval_rows_;
  GrowingArray<float> eval_scores_;  // of members
  GrowingArray<float> eval_means_;
  PinnedBytes eval_answer_;

  Timeline timeline_;
  StageClock waited_;  // seconds of what has been waited for

  std::vector<DeviceScores> scored_queries_;

  // The latest comparison: scores and own widths of the shown documents.
  std::vector<double> shown_scores_;
  std::vector<double> own_sq_;

  bool scored_ = false;               // view_ holds a query scored at the current parameters
  bool update_unchecked_ = false;     // what the latest update started has not been validated
  bool training_unchecked_ = false;   // that includes a training
  bool restarted_ = false;            // which did not start at the parameters before it
  int repeats_ = 0;                   // how often it was repeated
  std::uint32_t round_ = 0;           // of the latest update
  std::uint64_t lost_widths_ = 0;     // at the latest answer
  std::int64_t negative_before_ = 0;  // in earlier runs
  std::uint64_t negative_seen_ = 0;   // at the latest answer that was returned
};

/// make_device_network() calls this in a CUDA build; the tests make the emulated one.
std::unique_ptr<DeviceNetwork> make_network(const DeviceNetworkSpec& spec);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
