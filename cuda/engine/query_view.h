#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/device_network.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_trainer.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/rank_gather.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A query's documents as the networks score them: the memory of one score_query(), and the answer that
/// goes to the host in one copy.
class QueryView {
 public:
  QueryView(const DeviceNetworkSpec& spec, const float* train);

  /// The answers of several queries may be on the way to the host, each in a slot of its own. What is on
  /// the host is that of the latest slot, unless another is named.
  void use_slot(std::size_t slot);
  /// Makes room for a query of so many documents; waits where there is too little.
  void make_room(Stream stream, std::int64_t docs);
  /// Takes the documents of a query to the device if they are handed over.
  void bring(Stream stream, DeviceQuery query);
  /// Whether the latest query was handed over with these documents.
  bool holds(DeviceQuery query) const;
  /// Where the documents are from which those of the latest query that was brought are counted.
  const float* documents() const {
    if (query_.there != 0) return query_.handed;
    return query_.handed == nullptr ? train_ : handed_.data();
  }
  /// Scores, and factors for widths. Of an ensemble the scores of this device's members.
  void score(Products& products, DeviceQuery query, const NetworkStack& networks);
  /// Scores and magnitudes by member, of which ranks complete each other's.
  std::array<RankGather::Rows, 2> member_rows();
  /// The order by score, of an ensemble by the mean over all members.
  void order_by_score(Stream stream);
  /// Certain orders. The posterior's status and the training's outcome join the answer.
  void find_certain_by_width(Stream stream, const CertaintyRule* rule, const CovarianceStatus* status,
                             const double* outcome);
  void find_certain_by_vote(Stream stream, const CovarianceStatus* status, const double* outcome);
  /// Starts copying the answer to the host.
  void fetch(Stream stream);
  /// The same with the scores, for which write_scores() then need not wait.
  void fetch_with_scores(Stream stream);
  /// The same without orders, and with this status and outcome.
  void fetch_figures(Stream stream, const CovarianceStatus* status, const double* outcome);

  DeviceQuery query() const { return query_; }
  FactorRows rows() { return {rows_.data(), query_.docs, spec_.shape.factors()}; }
  double* m() { return m_.data(); }
  /// Starts copying what decided (M, rule, scores) to the host.
  void fetch_decision(Stream stream, const CertaintyRule* rule);
  void write_scores(Stream stream, std::span<float> scores);
  void write_width_sq(Stream stream, const CertaintyRule* rule, std::span<double> width_sq);
  std::int64_t bytes() const;

  // On the host after a fetch:
  struct Figures {
    CovarianceStatus status;
    WidthHealthSums health;       // since construction
    std::int32_t first_bad = -1;  // document whose score is not a number
  };
  const Figures& figures() const { return *on_host<Figures>(0); }
  const Figures& figures_of(std::size_t slot) const {
    return *reinterpret_cast<const Figures*>(host_[slot].answer.data());
  }
  std::span<const double> outcome() const;  // [kOutcomes × members]
  DeviceOrders orders() const;
  DeviceScores scores_of(std::size_t slot) const;
  // On the host after fetch_decision():
  struct Decision {
    CertaintyRule rule;
    std::span<const float> scores;  // [docs]
    std::span<const double> m;      // [docs × docs], lower triangle
  };
  Decision decision() const;

 private:
  template <class T>
  T* on_device(std::int64_t at) {
    return reinterpret_cast<T*>(device_answer_.data() + at);
  }
  /// What goes to the device and comes back for one query at a time.
  struct HostSide {
    PinnedBytes handed;  // the documents that are handed over
    Event handed_over;   // to the device
    PinnedBytes answer;
    PinnedBytes scores;  // where they were asked for
    std::int64_t docs = 0;
    bool has_scores = false;
  };

  HostSide& host() { return host_[slot_]; }
  const HostSide& host() const { return host_[slot_]; }
  template <class T>
  const T* on_host(std::int64_t at) const {
    return reinterpret_cast<const T*>(host().answer.data() + at);
  }
  DeviceOrders orders_in(const HostSide& side) const;
  bool by_vote() const { return spec_.certainty.by_vote; }
  const float* scores() const { return by_vote() ? mean_.data() : scores_.data(); }
  WidthedDocs widthed();
  CarriedFigures carried(const CovarianceStatus* status, const double* outcome);
  struct DecisionPlaces {
    std::int64_t rule = 0, scores = 0, magnitudes = 0, end = 0;  // M is at 0
  };
  DecisionPlaces decision_places() const;

  DeviceNetworkSpec spec_;
  const float* train_;
  DeviceQuery query_;
  GrowingArray<float> handed_;
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
  DeviceArray<std::byte> device_answer_;
  std::vector<HostSide> host_;
  std::size_t slot_ = 0;
  // The decision: M, rule, scores, magnitudes.
  PinnedBytes host_decision_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
