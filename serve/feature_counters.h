#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/feedback/feedback_record.h"
#include "core/io/state_archive.h"
#include "serve/feature_schema.h"

namespace olrank {

/// The counters tell what the log says of documents, as features of a schema: how often each was shown and
/// clicked, alone or with a query, and since when. Views and clicks lose half of their weight with each
/// half-life. The counts are a function of the records so far and their own times, to the bit. Beyond a
/// counter's limit, what was shown least recently is forgotten. One thread observes or loads, and any may
/// read meanwhile.
class FeatureCounters {
 public:
  static constexpr std::size_t kBytesOfEntry = 104;  // with its places in the list and in the index

  explicit FeatureCounters(const FeatureSchema& schema);

  /// Counts the shown documents of the next record. One without a time has the latest time so far.
  void observe(const FeedbackRecord& record);
  /// Puts the counters of a list of this time into the rows of its documents, [docs × width].
  void fill(std::string_view query, std::span<const DocId> docs, std::int64_t time,
            std::span<float> rows) const;
  std::size_t bytes() const;

  void save(StateWriter& state) const;
  /// The counters of the state replace the present ones.
  void load(StateReader& state);

 private:
  struct Entry {
    std::uint64_t key = 0;
    double clicks = 0.0;  // as they count at `time`
    double views = 0.0;
    std::int64_t time = 0;   // of the latest list with it
    std::int64_t first = 0;  // of the first one
  };
  /// Counts with one half-life.
  struct Tally {
    bool by_query = false;
    double half_life = 0.0;  // in ms; 0: none
    std::size_t limit = 0;
    std::list<Entry> entries{};  // the one shown least recently first
    std::unordered_map<std::uint64_t, std::list<Entry>::iterator> places{};

    double weight(std::int64_t age) const;
  };
  struct Counter {
    std::size_t tally = 0;
    std::int64_t place = 0;  // in a document's row
    std::string of;
    std::vector<double> prior;
  };
  float value(const Counter& counter, const Entry& entry, std::int64_t time) const;

  std::int64_t width_;
  std::vector<Tally> tallies_;
  std::vector<Counter> counters_;
  std::int64_t latest_ = 0;
  mutable std::shared_mutex mutex_;
};

}  // namespace olrank
