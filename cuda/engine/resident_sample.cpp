#include "cuda/engine/resident_sample.h"

#include <algorithm>

#include "cuda/ops/history_update.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

/// Pairs of its own that most rounds stay below.
constexpr std::int64_t kUsualPairs = 32;

template <class T>
void fill_rest(Stream stream, GrowingArray<T>& array, std::int64_t used, std::int64_t size, int byte) {
  fill_bytes(stream, array.data() + used, byte, static_cast<std::size_t>(size - used) * sizeof(T));
}

/// The documents of the round's own pairs come first.
std::int64_t own_docs(const DeviceSample& sample) {
  std::int64_t docs = 0;
  for (std::size_t t = 0; t < sample.terms.size(); ++t) {
    if (sample.sources[t].own_weight == 0.0) continue;
    docs =
        std::max({docs, std::int64_t{sample.terms[t].first} + 1, std::int64_t{sample.terms[t].second} + 1});
  }
  return docs;
}

}  // namespace

void ResidentSample::fill(Stream stream, const DeviceUpdate& update, const PackedUpdate& packed,
                          const float* history) {
  const auto docs = std::ssize(update.sample.docs);
  const auto terms = std::ssize(update.sample.terms);
  const std::int64_t usual = replay_ + kUsualPairs;
  bucket_ = {padded_size(std::max(docs, 2 * usual)), padded_size(std::max(terms, usual))};
  const IndexedPairs::Sizes sizes{bucket_.docs, bucket_.terms};
  bool moved = pairs_.reserve(stream, features_, sizes, {}, 0);
  moved |= own_values_.reserve(stream, bucket_.docs * features_);
  moved |= sources_.reserve(stream, bucket_.terms);
  if (moved) ++moves_;

  gather_docs(stream, history, features_, packed.sample_docs, docs, pairs_.values.data());
  const std::int64_t own = own_docs(update.sample);
  copy_bytes(stream, own_values_.data(), pairs_.values.data(),
             static_cast<std::size_t>(own * features_) * sizeof(float));
  copy_bytes(stream, pairs_.terms.data(), packed.sample_terms, update.sample.terms.size_bytes());
  copy_bytes(stream, sources_.data(), packed.sample_sources, update.sample.sources.size_bytes());
  // An earlier sample's documents could have scores that are not finite.
  fill_rest(stream, pairs_.values, docs * features_, bucket_.docs * features_, 0);
  fill_rest(stream, own_values_, own * features_, bucket_.docs * features_, 0);
  fill_rest(stream, pairs_.terms, terms, bucket_.terms, kPaddingByte);
  fill_rest(stream, sources_, terms, bucket_.terms, kPaddingByte);
  pairs_.index(stream, sizes);
}

std::int64_t ResidentSample::bytes() const {
  return pairs_.bytes() + own_values_.bytes() + sources_.bytes();
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
