#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/ops/device_network.h"
#include "cuda/engine/resident_history.h"
#include "cuda/engine/resident_trainer.h"
#include "cuda/engine/shadow_posterior.h"
#include "cuda/engine/timeline.h"
#include "cuda/engine/watched_posterior.h"
#include "cuda/ops/certain_orders.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A query's documents as the networks see them: the memory of a look, and the answer that goes to the host
/// in one copy.
class QueryView {
 public:
  QueryView(const DeviceNetworkSpec& spec, const float* train);

  /// Scores, and factors for widths.
  void pass(Stream stream, DeviceQuery query, const NetworkStack& networks);
  void order_by_score(Stream stream);
  void find_certain_by_width(Stream stream, const CertaintyRule* rule);
  void find_certain_by_vote(Stream stream);
  /// Begins to bring the answer to the host, with what else is asked about.
  void fetch(Stream stream, const CovarianceStatus* status, const double* outcome);
  /// The same without orders.
  void fetch_figures(Stream stream, const CovarianceStatus* status, const double* outcome);

  DeviceQuery query() const { return query_; }
  FactorRows rows() { return {rows_.data(), query_.docs, spec_.shape.factors()}; }
  double* m() { return m_.data(); }
  /// Begins to bring what decided to the host.
  void fetch_reasons(Stream stream, const CertaintyRule* rule);
  void write_scores(Stream stream, std::span<float> scores);
  void write_width_sq(Stream stream, const CertaintyRule* rule, std::span<double> width_sq);
  std::int64_t bytes() const;

  // What has come to the host.
  struct Figures {
    CovarianceStatus status;
    WidthHealthSums health;       // since the making
    std::int32_t first_bad = -1;  // document whose score is no number
  };
  const Figures& figures() const { return *here<Figures>(0); }
  std::span<const double> outcome() const;  // [kOutcomes × members]
  DeviceComparison reasons() const;         // without what a shadow knows
  DeviceOrders orders() const;

 private:
  template <class T>
  T* there(std::int64_t at) {
    return reinterpret_cast<T*>(answer_there_.data() + at);
  }
  template <class T>
  const T* here(std::int64_t at) const {
    return reinterpret_cast<const T*>(answer_here_.data() + at);
  }
  const float* scores() const { return spec_.by_vote ? mean_.data() : scores_.data(); }
  WidthedDocs widthed();
  struct ReasonPlaces {
    std::int64_t rule = 0, scores = 0, magnitudes = 0, end = 0;  // M lies at 0
  };
  ReasonPlaces reason_places() const;

  DeviceNetworkSpec spec_;
  const float* train_;
  DeviceQuery query_;
  DeviceArray<std::int64_t> offsets_;  // 0, docs for every number of docs
  DeviceArray<float> rows_;
  DeviceArray<float> scores_;
  DeviceArray<float> magnitudes_;
  DeviceArray<float> mean_;
  DeviceArray<double> m_;
  // The answer: figures, outcome, order by score, bits.
  std::int64_t outcome_at_;
  std::int64_t order_at_;
  std::int64_t bits_at_;
  DeviceArray<std::byte> answer_there_;
  PinnedBytes answer_here_;
  // The reasons, asked for by few: M, the rule, scores, magnitudes.
  PinnedBytes reasons_here_;
};

/// Networks whose whole round lies on the device.
class ResidentNetwork : public DeviceNetwork {
 public:
  explicit ResidentNetwork(const DeviceNetworkSpec& spec);
  ~ResidentNetwork() override;

  DeviceOrders look(DeviceQuery query) override;
  void describe(std::span<float> scores, std::span<double> width_sq) override;
  DeviceComparison compare(std::span<const std::int32_t> shown) override;
  void judge_shadow(bool good) override;
  void learn(const DeviceLesson& lesson) override;
  std::vector<double> steps() override;
  std::string_view full_form() const override;
  void go_primal() override;
  DeviceHealth health() override;
  void begin_scores(FeatureMatrix docs) override;
  bool scores_ready() override { return judge_stream_.idle(); }
  void finish_scores(std::span<float> scores) override;
  std::vector<float> theta() override;
  void add_seconds(StageClock& clock) override;
  void save(StateWriter& state) override;
  void load(StateReader& state, const DeviceHistory& history) override;

 private:
  NetworkStack networks() const { return {spec_.shape, theta_.data(), spec_.members}; }
  void start_look(DeviceQuery query);
  /// Waits until the latest training is known to be good.
  void settle();
  /// Judges what came to the host; whether something had to be made again, so that it has to come again.
  bool mend();
  void forget_negative_widths();
  bool mend_training();
  bool mend_posterior();
  [[noreturn]] void tell_divergence();
  ResidentPosteriorSpec posterior_spec() const { return {spec_.shape, spec_.lambda, spec_.scale}; }

  DeviceNetworkSpec spec_;
  OwnedStream stream_;
  DeviceArray<float> train_;
  DeviceArray<float> eval_docs_;
  DeviceArray<float> theta_;  // [members × p]
  DeviceArray<CertaintyRule> rule_;
  QueryView view_;
  ResidentHistory history_;
  WatchedPosterior posterior_;
  std::optional<ShadowPosterior> shadow_;
  std::unique_ptr<ResidentTrainer> trainer_;

  // Judging, in a stream of its own, by a copy of the parameters.
  OwnedStream judge_stream_;
  Event eval_theta_;  // has been copied
  DeviceArray<float> theta_copy_;
  GrowingArray<float> uploaded_;  // documents that are not known here
  GrowingArray<float> eval_rows_;
  GrowingArray<float> eval_scores_;  // of members
  GrowingArray<float> eval_means_;
  PinnedBytes eval_answer_;

  Timeline timeline_;
  StageClock waited_;  // seconds of what has been waited for

  bool seen_ = false;                 // view_ is of the parameters as they stand
  bool unsettled_ = false;            // a training has not been judged yet
  bool halved_ = false;               // it was made again with half the step
  std::uint32_t round_ = 0;           // of the latest lesson
  std::uint64_t lost_widths_ = 0;     // before the latest answer
  std::int64_t negative_before_ = 0;  // in runs before this one
  std::uint64_t negative_seen_ = 0;   // at the latest answer that was told
};

/// What make_device_network() makes in a CUDA build; the tests make the emulated one.
std::unique_ptr<DeviceNetwork> make_network(const DeviceNetworkSpec& spec);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
