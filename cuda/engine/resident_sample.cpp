#include "cuda/engine/resident_sample.h"

#include <algorithm>

#include "cuda/engine/padded_size.h"
#include "cuda/ops/history_update.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Pairs of its own that most rounds stay below.
constexpr std::int64_t kUsualPairs = 32;

template <class T>
void fill_rest(Stream stream, GrowingArray<T>& array, std::int64_t used, std::int64_t size, int byte) {
  fill_bytes(stream, array.data() + used, byte, static_cast<std::size_t>(size - used) * sizeof(T));
}

}  // namespace

void ResidentSample::fill(Stream stream, const DeviceUpdate& update, const PackedUpdate& packed,
                          const float* train) {
  const auto docs = std::ssize(update.sample.docs);
  const auto terms = std::ssize(update.sample.terms);
  const std::int64_t usual = replay_ + kUsualPairs;
  bucket_ = {padded_size(std::max(docs, 2 * usual)), padded_size(std::max(terms, usual))};
  bool moved = values_.reserve(stream, bucket_.docs * features_);
  moved |= terms_.reserve(stream, bucket_.terms);
  moved |= sources_.reserve(stream, bucket_.terms);
  moved |= incidence_offsets_.reserve(stream, bucket_.docs + 1);
  moved |= incidence_ends_.reserve(stream, 2 * bucket_.terms);
  words_.reserve(stream, incidence_workspace(bucket_.docs, bucket_.terms));
  if (moved) ++moves_;

  gather_docs(stream, train, features_, packed.sample_docs, docs, values_.data());
  copy_bytes(stream, terms_.data(), packed.sample_terms, update.sample.terms.size_bytes());
  copy_bytes(stream, sources_.data(), packed.sample_sources, update.sample.sources.size_bytes());
  // An earlier sample's documents could have scores that are not finite.
  fill_rest(stream, values_, docs * features_, bucket_.docs * features_, 0);
  fill_rest(stream, terms_, terms, bucket_.terms, kPaddingByte);
  fill_rest(stream, sources_, terms, bucket_.terms, kPaddingByte);
  find_incidence(stream, terms_.data(), bucket_.terms, bucket_.docs, words_.data(),
                 {incidence_offsets_.data(), incidence_ends_.data()});
}

PairHistoryView ResidentSample::view() const {
  PairHistoryView view;
  view.features = values_.data();
  view.docs = bucket_.docs;
  view.terms = terms_.data();
  view.count = bucket_.terms;
  view.incidence = {const_cast<std::int32_t*>(incidence_offsets_.data()),
                    const_cast<std::int32_t*>(incidence_ends_.data())};
  return view;
}

std::int64_t ResidentSample::bytes() const {
  return values_.bytes() + terms_.bytes() + sources_.bytes() + incidence_offsets_.bytes() +
         incidence_ends_.bytes() + words_.bytes();
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
