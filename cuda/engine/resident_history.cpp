#include "cuda/engine/resident_history.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/math/dcg.h"
#include "cuda/ops/query_inputs.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

std::vector<double> discounts_of(std::int64_t ranks) {
  std::vector<double> discounts;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    discounts.push_back(dcg_discount(rank, Discount::kLog2));
  return discounts;
}

ResidentHistory::ResidentHistory(std::int64_t features, Keeps keeps, std::int64_t most_docs,
                                 std::int64_t replay)
    : features_(features),
      keeps_observations_(keeps != Keeps::kTerms),
      keeps_lists_(keeps == Keeps::kLists),
      sample_(features, replay),
      discounts_(std::span<const double>(discounts_of(keeps_lists_ ? most_docs : 0))) {}

void ResidentHistory::make_room(Stream stream, const PairSizes& wanted, std::int64_t most_examined) {
  bucket_ = {padded_size(wanted.docs), padded_size(wanted.terms), padded_size(wanted.observations),
             padded_size(wanted.impressions)};
  bool moved = pairs_.reserve(stream, features_, bucket_, counts_, bucket_.terms + bucket_.observations);
  if (keeps_observations_)
    moved |= observations_.reserve(stream, bucket_.observations, counts_.observations, kPaddingByte);
  if (keeps_lists_) {
    if (most_examined > discounts_.size()) {
      OwnedStream::wait_for(stream);
      discounts_ = DeviceArray<double>(std::span<const double>(discounts_of(2 * most_examined)));
      moved = true;
    }
    moved |= doc_numbers_.reserve(stream, bucket_.docs, counts_.docs);
    moved |= group_offsets_.reserve(stream, bucket_.terms + 1);
    moved |= group_items_.reserve(stream, bucket_.observations);
    // A padding impression ends before it begins, so that kernels find it empty.
    const bool is_first = first_doc_.capacity() == 0;
    const std::int64_t ends = is_first ? 0 : counts_.impressions + 1;
    moved |= first_doc_.reserve(stream, bucket_.impressions + 1, ends, kPaddingByte);
    moved |= first_pair_.reserve(stream, bucket_.impressions + 1, ends, kPaddingByte);
    if (is_first) {
      fill_bytes(stream, first_doc_.data(), 0, sizeof(std::int32_t));
      fill_bytes(stream, first_pair_.data(), 0, sizeof(std::int32_t));
    }
    moved |= examined_.reserve(stream, wanted.examined, counts_.examined);
    moved |= clicks_.reserve(stream, wanted.examined, counts_.examined);
  }
  if (moved) ++moves_;
}

void ResidentHistory::add(Stream stream, const DeviceUpdate& update, const float* documents) {
  PairSizes wanted = counts_;
  const auto new_docs = std::ssize(update.new_docs);
  wanted.docs += new_docs;
  for (const DeviceUpdate::Term& changed : update.terms)
    wanted.terms = std::max(wanted.terms, std::int64_t{changed.index} + 1);
  if (keeps_observations_) wanted.observations += std::ssize(update.observations);
  if (keeps_lists_) {
    wanted.examined += std::ssize(update.examined);
    wanted.impressions += 1;
  }
  make_room(stream, wanted, std::ssize(update.examined));
  const std::array ends = {static_cast<std::int32_t>(wanted.examined),
                           static_cast<std::int32_t>(wanted.observations)};
  latest_ = packet_.send(stream, update, ends);
  gather_docs(stream, documents, features_, latest_.new_docs, new_docs,
              pairs_.values.data() + counts_.docs * features_);
  write_terms(stream, latest_.terms, std::ssize(update.terms), pairs_.terms.data());
  if (keeps_observations_) {
    copy_bytes(stream, observations_.data() + counts_.observations, latest_.observations,
               update.observations.size_bytes());
  }
  if (keeps_lists_) {
    copy_bytes(stream, doc_numbers_.data() + counts_.docs, latest_.doc_numbers,
               update.doc_numbers.size_bytes());
    copy_bytes(stream, examined_.data() + counts_.examined, latest_.examined, update.examined.size_bytes());
    copy_bytes(stream, clicks_.data() + counts_.examined, latest_.clicks, update.clicks.size_bytes());
    copy_bytes(stream, first_doc_.data() + wanted.impressions, latest_.ends, sizeof(std::int32_t));
    copy_bytes(stream, first_pair_.data() + wanted.impressions, latest_.ends + 1, sizeof(std::int32_t));
  }
  counts_ = wanted;
  observed_ = update.observed;
  latest_docs_outgrow_ = update.docs_outgrow;
  latest_extent_ = update.extent;
  if (latest_extent_ == TrainingExtent::kHistory) index_terms(stream);
  if (latest_extent_ == TrainingExtent::kSample)
    sample_.fill(stream, update, latest_, pairs_.values.data());
}

void ResidentHistory::index_terms(Stream stream) {
  pairs_.index(stream, bucket_);
  if (!keeps_lists_) return;
  group_observations(stream, observations_.data(), bucket_.observations, bucket_.terms, pairs_.words.data(),
                     group_offsets_.data(), group_items_.data());
}

ImpressionView ResidentHistory::impressions() const {
  return {bucket_.impressions, first_doc_.data(),   first_pair_.data(), examined_.data(),
          clicks_.data(),      doc_numbers_.data(), discounts_.data()};
}

std::int64_t ResidentHistory::bytes() const {
  return bytes_of(pairs_, doc_numbers_, observations_, group_offsets_, group_items_, first_doc_,
                  first_pair_, examined_, clicks_, sample_);
}

void ResidentHistory::restore(Stream stream, const DeviceHistory& history) {
  const auto size = [](const auto& span) { return std::ssize(span); };
  PairSizes counts{history.docs.docs, size(history.terms)};
  if (keeps_observations_) counts.observations = size(history.observations);
  if (keeps_lists_) {
    counts.impressions = size(history.first_doc) - 1;
    counts.examined = size(history.examined);
  }
  counts_ = {};
  std::int64_t most_examined = 0;
  for (std::size_t list = 1; list < history.first_doc.size(); ++list)
    most_examined =
        std::max<std::int64_t>(most_examined, history.first_doc[list] - history.first_doc[list - 1]);
  make_room(stream, counts, most_examined);
  const auto forget = [&](auto& array) { array.fill(stream, kPaddingByte); };
  pairs_.values.fill(stream, 0);
  forget(pairs_.terms);
  forget(observations_);
  forget(first_doc_);
  forget(first_pair_);
  OwnedStream::wait_for(stream);
  copy_to_device(std::span(history.docs.values, counts.docs * features_), pairs_.values.data());
  copy_to_device(history.terms, pairs_.terms.data());
  if (keeps_observations_) copy_to_device(history.observations, observations_.data());
  if (keeps_lists_) {
    copy_to_device(history.doc_numbers, doc_numbers_.data());
    copy_to_device(history.first_doc, first_doc_.data());
    copy_to_device(history.first_pair, first_pair_.data());
    copy_to_device(history.examined, examined_.data());
    copy_to_device(history.clicks, clicks_.data());
  }
  counts_ = counts;
  observed_ = history.observed;
  index_terms(stream);
}

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
  bool moved = pairs_.reserve(stream, features_, bucket_, {}, 0);
  moved |= own_values_.reserve(stream, bucket_.docs * features_);
  moved |= sources_.reserve(stream, bucket_.terms);
  if (moved) ++moves_;

  gather_docs(stream, history, features_, packed.sample_docs, docs, pairs_.values.data());
  const std::int64_t own = own_docs(update.sample);
  copy_numbers(stream, own_values_.data(), pairs_.values.data(), own * features_);
  copy_bytes(stream, pairs_.terms.data(), packed.sample_terms, update.sample.terms.size_bytes());
  copy_bytes(stream, sources_.data(), packed.sample_sources, update.sample.sources.size_bytes());
  // An earlier sample's documents could have scores that are not finite.
  fill_rest(stream, pairs_.values, docs * features_, bucket_.docs * features_, 0);
  fill_rest(stream, own_values_, own * features_, bucket_.docs * features_, 0);
  fill_rest(stream, pairs_.terms, terms, bucket_.terms, kPaddingByte);
  fill_rest(stream, sources_, terms, bucket_.terms, kPaddingByte);
  pairs_.index(stream, bucket_);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
