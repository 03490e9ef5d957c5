#include "cuda/engine/query_view.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "core/math/pair_loss.h"
#include "cuda/engine/resident_trainer.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kAlignment = 16;

template <class T>
std::int64_t room_for(std::int64_t count) {
  return (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
}

/// {0, n} for n = 0, 1, …: the offsets of a single query.
std::vector<std::int64_t> single_offsets(std::int64_t most_docs) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t docs = 0; docs <= most_docs; ++docs) offsets.insert(offsets.end(), {0, docs});
  return offsets;
}

std::int64_t outcomes(const DeviceNetworkSpec& spec) {
  return ResidentTrainer::kOutcomes * spec.members;
}

}  // namespace

QueryView::QueryView(const DeviceNetworkSpec& spec, const float* train, std::int64_t most_together)
    : spec_(spec),
      train_(train),
      most_together_(most_together),
      offsets_(std::span<const std::int64_t>(single_offsets(spec.data.most_docs))),
      rows_(spec.members * most_together * spec.shape.factors()),
      scores_(spec.members * most_together),
      magnitudes_(scores_.size()),
      mean_(spec.certainty.by_vote ? most_together : 0),
      // NaN where a number would be a mistake to use.
      m_(filled_array(spec.certainty.by_vote ? 0 : spec.data.most_docs * spec.data.most_docs,
                      std::numeric_limits<double>::quiet_NaN())),
      outcome_at_(room_for<Figures>(1)),
      order_at_(outcome_at_ + room_for<double>(outcomes(spec))),
      bits_at_(order_at_ + room_for<std::int32_t>(spec.data.most_docs)),
      device_answer_(filled_array(
          bits_at_ + room_for<std::uint64_t>(spec.data.most_docs * OrderBits::words(spec.data.most_docs)),
          std::byte{0})) {
  const Figures fresh;
  copy_to_device(std::span(&fresh, 1), on_device<Figures>(0));
  use_slot(0);
  std::memcpy(host().answer.data(), &fresh, sizeof fresh);
}

void QueryView::use_slot(std::size_t slot) {
  while (host_.size() <= slot)
    host_.emplace_back().answer = PinnedBytes(static_cast<std::size_t>(device_answer_.size()));
  slot_ = slot;
}

void QueryView::make_room(Stream stream, std::int64_t docs, std::int64_t together) {
  if (docs <= spec_.data.most_docs && together <= most_together_) return;
  OwnedStream::wait_for(stream);
  DeviceNetworkSpec wider = spec_;
  // M grows with the square of the documents.
  if (docs > spec_.data.most_docs)
    wider.data.most_docs = std::max(docs, spec_.data.most_docs + spec_.data.most_docs / 4);
  if (together > most_together_) together = std::max(together, 2 * most_together_);
  QueryView larger(wider, train_, std::max({together, most_together_, wider.data.most_docs}));
  // The counts since construction go on.
  copy_bytes(stream, larger.device_answer_.data(), device_answer_.data(), sizeof(Figures));
  OwnedStream::wait_for(stream);
  std::memcpy(larger.host().answer.data(), host().answer.data(), sizeof(Figures));
  *this = std::move(larger);
}

void QueryView::bring(Stream stream, std::span<const DeviceQuery> queries) {
  brought_.assign(queries.begin(), queries.end());
  together_ = 0;
  for (const DeviceQuery& query : brought_) together_ += query.docs;
  has_scores_ = false;
  take(0);
  if (query_.handed == nullptr || query_.there != 0) return;
  const auto bytes_of_docs = [&](std::int64_t docs) {
    return static_cast<std::size_t>(docs * spec_.shape.inputs) * sizeof(float);
  };
  HostSide& side = host();
  side.handed_over.wait();  // of an earlier query
  side.handed.reserve(bytes_of_docs(together_));
  std::byte* to = side.handed.data();
  for (const DeviceQuery& query : brought_) {
    std::memcpy(to, query.handed, bytes_of_docs(query.docs));
    to += bytes_of_docs(query.docs);
  }
  handed_.reserve(stream, together_ * spec_.shape.inputs);
  copy_bytes(stream, handed_.data(), side.handed.data(), bytes_of_docs(together_));
  side.handed_over.record(stream);
}

void QueryView::take(std::size_t number) {
  first_ = 0;
  for (std::size_t before = 0; before < number; ++before) first_ += brought_[before].docs;
  query_ = brought_[number];
}

bool QueryView::holds(DeviceQuery query) const {
  if (query_.handed == nullptr || query.handed == nullptr || query.docs != query_.docs) return false;
  if (query_.there != 0 || query.there != 0) return query == query_;
  if (brought_.size() != 1) return false;
  const auto bytes = static_cast<std::size_t>(query.docs * spec_.shape.inputs) * sizeof(float);
  return std::memcmp(host().handed.data(), query.handed, bytes) == 0;
}

void QueryView::score(Products& products, const NetworkStack& networks) {
  const float* features = documents() + query_.first_doc * spec_.shape.inputs;
  const FactorRows rows{rows_.data(), together_, spec_.shape.factors()};
  const ScoreArrays out{scores_.data(), magnitudes_.data()};
  if (!by_vote()) {
    tangent_factors(products, networks, features, rows, out);
    return;
  }
  forward(products, networks, features, rows, out);
  mean_scores(products.stream(), spec_.members, together_, scores_.data(), mean_.data());
}

void QueryView::order_by_score(Stream stream) {
  OLRANK_DEVICE_NAMESPACE::order_by_score(stream, 1, offsets_.data() + 2 * query_.docs, scores(),
                                          on_device<std::int32_t>(order_at_),
                                          &on_device<Figures>(0)->first_bad);
}

WidthedDocs QueryView::widthed() {
  return {query_.docs, scores(), magnitudes(), on_device<std::int32_t>(order_at_), m_.data()};
}

void QueryView::find_certain(Stream stream, const CertaintyRule* rule, const CovarianceStatus* status,
                             const double* outcome) {
  const CarriedFigures carried{status, &on_device<Figures>(0)->status, outcome,
                               on_device<double>(outcome_at_), outcomes(spec_)};
  auto* bits = on_device<std::uint64_t>(bits_at_);
  if (by_vote()) {
    certain_by_vote(stream, spec_.members, query_.docs, together_, scores_.data() + first_, magnitudes(),
                    on_device<std::int32_t>(order_at_), bits, carried);
  } else {
    certain_by_width(stream, widthed(), rule, bits, nullptr, &on_device<Figures>(0)->health, carried);
  }
}

void QueryView::fetch_figures(Stream stream, const CovarianceStatus* status, const double* outcome) {
  copy_bytes(stream, &on_device<Figures>(0)->status, status, sizeof *status);
  copy_bytes(stream, on_device<double>(outcome_at_), outcome,
             static_cast<std::size_t>(outcomes(spec_)) * sizeof(double));
  copy_bytes(stream, host().answer.data(), device_answer_.data(), static_cast<std::size_t>(order_at_));
}

void QueryView::fetch(Stream stream) {
  const std::int64_t bytes = bits_at_ + query_.docs * OrderBits::words(query_.docs) *
                                            static_cast<std::int64_t>(sizeof(std::uint64_t));
  copy_bytes(stream, host().answer.data(), device_answer_.data(), static_cast<std::size_t>(bytes));
  host().docs = query_.docs;
  host().first = slot_ == 0 ? 0 : host_[slot_ - 1].first + host_[slot_ - 1].docs;
}

void QueryView::fetch_scores(Stream stream, std::int64_t all) {
  const std::int64_t first = host().first + host().docs - together_;
  // A query alone comes behind the lists of an earlier call, in whose latest slot it is.
  host_scores_.reserve(static_cast<std::size_t>(std::max(all, first + together_)) * sizeof(float));
  copy_bytes(stream, host_scores_.data() + first * std::int64_t{sizeof(float)}, all_scores(),
             static_cast<std::size_t>(together_) * sizeof(float));
  has_scores_ = true;
}

std::span<const double> QueryView::outcome() const {
  return {reinterpret_cast<const double*>(host().answer.data() + outcome_at_),
          static_cast<std::size_t>(outcomes(spec_))};
}

DeviceOrders QueryView::orders_in(const HostSide& side) const {
  const std::byte* answer = side.answer.data();
  return {{reinterpret_cast<const std::int32_t*>(answer + order_at_), static_cast<std::size_t>(side.docs)},
          {reinterpret_cast<const std::uint64_t*>(answer + bits_at_),
           static_cast<std::size_t>(side.docs * OrderBits::words(side.docs))}};
}

DeviceScores QueryView::scores_of(std::size_t slot) const {
  const HostSide& side = host_[slot];
  return {orders_in(side),
          {scores_on_host(side), static_cast<std::size_t>(side.docs)},
          figures_of(slot).first_bad};
}

QueryView::Decision QueryView::decision(const CertaintyRule* rule) {
  const auto docs = static_cast<std::size_t>(query_.docs);
  Decision found{{}, std::vector<float>(docs), std::vector<double>(docs * docs)};
  std::vector<float> sizes(docs);
  copy_to_host(rule, std::span(&found.rule, 1));
  copy_to_host<float>(scores(), found.scores);
  copy_to_host<double>(m_.data(), found.m);
  copy_to_host<float>(magnitudes(), sizes);
  found.rule.least_difference =
      rounding_of_scores(docs > 0 ? *std::max_element(sizes.begin(), sizes.end()) : 0.0F);
  return found;
}

std::int64_t QueryView::bytes() const {
  return bytes_of(rows_, scores_, magnitudes_, mean_, m_, offsets_, device_answer_, handed_);
}

void QueryView::write_scores(Stream stream, std::span<float> to) {
  if (has_scores_) {
    std::memcpy(to.data(), scores_on_host(host()), to.size_bytes());
    return;
  }
  OwnedStream::wait_for(stream);
  copy_to_host(scores(), to);
}

void QueryView::write_width_sq(Stream stream, const CertaintyRule* rule, std::span<double> to) {
  DeviceArray<double> width_sq(query_.docs * query_.docs);
  DeviceArray<std::uint64_t> bits(query_.docs * OrderBits::words(query_.docs));
  certain_by_width(stream, widthed(), rule, bits.data(), width_sq.data(), nullptr);
  OwnedStream::wait_for(stream);
  copy_to_host(width_sq.data(), to);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
