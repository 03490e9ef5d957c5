#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/device_network.h"
#include "cuda/engine/growing_array.h"
#include "cuda/engine/resident_history.h"
#include "cuda/ops/certain_orders.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/ops/tangent_factors.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The documents of queries as the networks score them, side by side: the memory of one score_query(), and
/// the answer about one of them, which goes to the host in one copy.
class QueryView {
 public:
  /// The view has room for so many documents side by side.
  QueryView(const DeviceNetworkSpec& spec, const float* train, std::int64_t most_together);

  /// The answers of several queries may be on the way to the host, each in a slot of its own. What is on
  /// the host is that of the latest slot, unless another is named.
  void use_slot(std::size_t slot);
  /// Makes room for queries of so many documents, and so many side by side; waits where there is too
  /// little.
  void make_room(Stream stream, std::int64_t docs, std::int64_t together);
  /// Takes the documents of queries to the device if they are handed over, as those of several are. What
  /// follows is about the first one.
  void bring(Stream stream, std::span<const DeviceQuery> queries);
  /// The calls that follow are about this one of them.
  void take(std::size_t number);
  /// Whether the latest query was handed over alone, with these documents.
  bool holds(DeviceQuery query) const;
  /// Where the documents are from which those of the latest query that was brought are counted.
  const float* documents() const {
    if (query_.there != 0) return query_.handed;
    return query_.handed == nullptr ? train_ : handed_.data();
  }
  /// Finds scores, and factors for widths, of the queries that were brought; for an ensemble, the
  /// scores of all members and their means, by which it orders.
  void score(Products& products, const NetworkStack& networks);
  void order_by_score(Stream stream);
  /// Certain orders by width, or of an ensemble by vote. The posterior's status and the training's outcome
  /// join the answer.
  void find_certain(Stream stream, const CertaintyRule* rule, const CovarianceStatus* status,
                    const double* outcome);
  /// Starts copying the answer to the host.
  void fetch(Stream stream);
  /// Starts copying the scores of all queries that were brought: the host has room for `all` documents of
  /// this call, from slot 0 on. write_scores() then need not wait.
  void fetch_scores(Stream stream, std::int64_t all);
  /// Fetches the answer without orders, and with this status and outcome.
  void fetch_figures(Stream stream, const CovarianceStatus* status, const double* outcome);

  DeviceQuery query() const { return query_; }
  FactorRows rows() {
    return {rows_.data() + first_ * spec_.shape.factors(), query_.docs, spec_.shape.factors()};
  }
  double* m() { return m_.data(); }
  /// Holds what has decided, on the host. The caller has waited.
  struct Decision {
    CertaintyRule rule;
    std::vector<float> scores;  // [docs]
    std::vector<double> m;      // [docs × docs], lower triangle
  };
  Decision decision(const CertaintyRule* rule);
  void write_scores(Stream stream, std::span<float> scores);
  void write_width_sq(Stream stream, const CertaintyRule* rule, std::span<double> width_sq);
  std::int64_t bytes() const;

  // On the host after a fetch:
  struct Figures {
    CovarianceStatus status;
    WidthHealthSums health;       // since construction
    std::int32_t first_bad = -1;  // document whose score is not a number
  };
  const Figures& figures() const { return figures_of(slot_); }
  const Figures& figures_of(std::size_t slot) const {
    return *reinterpret_cast<const Figures*>(host_[slot].answer.data());
  }
  std::span<const double> outcome() const;  // [kOutcomes × members]
  DeviceOrders orders() const { return orders_in(host()); }
  DeviceScores scores_of(std::size_t slot) const;

 private:
  template <class T>
  T* on_device(std::int64_t at) {
    return reinterpret_cast<T*>(device_answer_.data() + at);
  }
  /// It holds what goes to the device and comes back for one query at a time.
  struct HostSide {
    PinnedBytes handed;  // the documents that are handed over
    Event handed_over;   // to the device
    PinnedBytes answer;
    std::int64_t docs = 0;
    std::int64_t first = 0;  // document of those whose scores are on the host
  };

  HostSide& host() { return host_[slot_]; }
  const HostSide& host() const { return host_[slot_]; }
  DeviceOrders orders_in(const HostSide& side) const;
  bool by_vote() const { return spec_.certainty.by_vote; }
  const float* all_scores() const { return by_vote() ? mean_.data() : scores_.data(); }
  const float* scores() const { return all_scores() + first_; }
  const float* magnitudes() const { return magnitudes_.data() + first_; }
  const float* scores_on_host(const HostSide& side) const {
    return reinterpret_cast<const float*>(host_scores_.data()) + side.first;
  }
  WidthedDocs widthed();

  DeviceNetworkSpec spec_;
  const float* train_;
  std::int64_t most_together_;
  std::vector<DeviceQuery> brought_;  // side by side
  std::int64_t together_ = 0;         // their documents
  std::int64_t first_ = 0;            // of them, of `query_`
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
  PinnedBytes host_scores_;
  bool has_scores_ = false;  // of the latest query
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
