#include "serve/feature_counters.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "core/io/fingerprint.h"

namespace olrank {
namespace {

constexpr double kDay = 86'400'000.0;  // ms

/// Documents of a query have the hash of the query behind their ID.
std::uint64_t key_of(std::string_view doc, std::uint64_t query, bool by_query) {
  std::string name(doc);
  if (by_query) name.append(reinterpret_cast<const char*>(&query), sizeof query);
  return fingerprint_of(name).low;
}

}  // namespace

FeatureCounters::FeatureCounters(const FeatureSchema& schema) : width_(schema.width(false)) {
  for (const SchemaFeature& feature : schema.features()) {
    if (feature.kind != FeatureKind::kCounter) continue;
    const Tally wanted{feature.by == SchemaFeature::kByQuery, feature.half_life.value_or(0.0) * kDay,
                       static_cast<std::size_t>(feature.limit)};
    auto tally = std::find_if(tallies_.begin(), tallies_.end(), [&wanted](const Tally& one) {
      return one.by_query == wanted.by_query && one.half_life == wanted.half_life &&
             one.limit == wanted.limit;
    });
    if (tally == tallies_.end()) tally = tallies_.insert(tally, wanted);
    counters_.push_back({static_cast<std::size_t>(tally - tallies_.begin()), schema.place(feature),
                         feature.of, feature.prior_or_default()});
  }
}

double FeatureCounters::Tally::weight(std::int64_t age) const {
  return half_life == 0.0 || age <= 0 ? 1.0 : std::exp2(-static_cast<double>(age) / half_life);
}

/// Lists may come out of order, as those of windows do: an earlier one counts less from the start.
void FeatureCounters::observe(const FeedbackRecord& record) {
  const std::unique_lock lock(mutex_);
  const std::int64_t time = record.time > 0 ? record.time : latest_;
  latest_ = std::max(latest_, time);
  const std::uint64_t query = fingerprint_of(record.query).low;
  for (Tally& tally : tallies_) {
    for (std::int64_t rank = 0; rank < record.shown(); ++rank) {
      const std::uint64_t key = key_of(record.docs[rank].text, query, tally.by_query);
      const auto [place, is_new] = tally.places.try_emplace(key);
      if (is_new) {
        place->second = tally.entries.insert(tally.entries.end(), {key, 0.0, 0.0, time, time});
      } else {
        tally.entries.splice(tally.entries.end(), tally.entries, place->second);
      }
      Entry& entry = *place->second;
      const double kept = tally.weight(time - entry.time);
      const double added = tally.weight(entry.time - time);
      entry.views = entry.views * kept + added;
      entry.clicks = entry.clicks * kept + added * record.clicks[rank];
      entry.time = std::max(entry.time, time);
      entry.first = std::min(entry.first, time);
    }
    while (tally.entries.size() > tally.limit) {
      tally.places.erase(tally.entries.front().key);
      tally.entries.pop_front();
    }
  }
}

float FeatureCounters::value(const Counter& counter, const Entry& entry, std::int64_t time) const {
  const double weight = tallies_[counter.tally].weight(time - entry.time);
  double value = 0.0;
  if (counter.of == SchemaFeature::kClickRate) {
    value = (entry.clicks * weight + counter.prior[0]) / (entry.views * weight + counter.prior[1]);
  } else if (counter.of == SchemaFeature::kAge) {
    value = static_cast<double>(std::max<std::int64_t>(time - entry.first, 0)) / kDay;
  } else {
    value = weight * (counter.of == SchemaFeature::kClicks ? entry.clicks : entry.views);
  }
  return static_cast<float>(value);
}

void FeatureCounters::fill(std::string_view query, std::span<const DocId> docs, std::int64_t time,
                           std::span<float> rows) const {
  const std::uint64_t query_key = fingerprint_of(query).low;
  const std::shared_lock lock(mutex_);
  for (std::size_t number = 0; number < tallies_.size(); ++number) {
    const Tally& tally = tallies_[number];
    for (std::size_t doc = 0; doc < docs.size(); ++doc) {
      const auto known = tally.places.find(key_of(docs[doc].text, query_key, tally.by_query));
      if (known == tally.places.end()) continue;  // the row has the value of a document never shown
      for (const Counter& counter : counters_) {
        if (counter.tally == number)
          rows[static_cast<std::int64_t>(doc) * width_ + counter.place] =
              value(counter, *known->second, time);
      }
    }
  }
}

std::size_t FeatureCounters::bytes() const {
  const std::shared_lock lock(mutex_);
  std::size_t entries = 0;
  for (const Tally& tally : tallies_) entries += tally.entries.size();
  return entries * kBytesOfEntry;
}

void FeatureCounters::save(StateWriter& state) const {
  state.put("counters.latest", latest_);
  for (const Tally& tally : tallies_) {
    std::vector<std::uint64_t> keys;
    std::vector<double> counts;
    std::vector<std::int64_t> times;
    for (const Entry& entry : tally.entries) {
      keys.push_back(entry.key);
      counts.insert(counts.end(), {entry.clicks, entry.views});
      times.insert(times.end(), {entry.time, entry.first});
    }
    state.put("counters.keys", keys);
    state.put("counters.counts", counts);
    state.put("counters.times", times);
  }
}

void FeatureCounters::load(StateReader& state) {
  const auto latest = state.get_one<std::int64_t>("counters.latest");
  std::vector<Tally> tallies;
  tallies.reserve(tallies_.size());  // the places are within the lists
  for (const Tally& like : tallies_) {
    Tally& tally = tallies.emplace_back(Tally{like.by_query, like.half_life, like.limit});
    const auto keys = state.get<std::uint64_t>("counters.keys");
    const auto counts = state.get<double>("counters.counts");
    const auto times = state.get<std::int64_t>("counters.times");
    if (counts.size() != 2 * keys.size() || times.size() != counts.size())
      state.fail("The counters have other numbers of entries.");
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto entry = tally.entries.insert(
          tally.entries.end(), {keys[i], counts[2 * i], counts[2 * i + 1], times[2 * i], times[2 * i + 1]});
      if (!tally.places.emplace(keys[i], entry).second) state.fail("The counters have an entry twice.");
    }
  }
  const std::unique_lock lock(mutex_);
  latest_ = latest;
  tallies_.swap(tallies);
}

}  // namespace olrank
