#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/explore/exploring_list.h"
#include "core/feedback/feedback_record.h"
#include "models/files/model_scorer.h"

namespace olrank {

/// Periods of equally many lists since the start of the service. Whenever there are `kMost`, each two
/// become one, so that their memory is bounded.
template <typename Period, std::size_t kMost>
class EqualPeriods {
 public:
  explicit EqualPeriods(std::uint64_t length = 1) : length_(length) {}

  /// The period of the next list.
  Period& next() {
    if (lists_ % length_ == 0 && periods_.size() == kMost) {
      for (std::size_t i = 0; i < kMost / 2; ++i) {
        periods_[2 * i] += periods_[2 * i + 1];
        if (i > 0) periods_[i] = std::move(periods_[2 * i]);
      }
      periods_.resize(kMost / 2);
      length_ *= 2;
    }
    if (lists_++ % length_ == 0) periods_.emplace_back();
    return periods_.back();
  }
  std::uint64_t length() const { return length_; }
  /// Returns the periods that have all of their lists.
  std::span<const Period> complete() const { return std::span(periods_).first(lists_ / length_); }

 private:
  std::vector<Period> periods_;
  std::uint64_t length_;
  std::uint64_t lists_ = 0;
};

/// It keeps what the service showed last, and how the share of certain orders went since it started. Its
/// memory is bounded, whatever is shown. Thread-safe.
class RecentLists {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kLists = 20;
  static constexpr std::size_t kDocs = 10;      // kept of a list
  static constexpr std::size_t kPeriods = 128;  // of the history

  struct List {
    std::string impression;
    std::string query;
    std::vector<DocId> docs;  // the first ones, best first
    std::int64_t shown = 0;   // how many there were
    std::uint64_t round = 0;  // rounds learned by the ranker that made the list
    std::optional<ListCertainty> certainty{};
    std::optional<std::vector<std::uint8_t>> clicks{};  // of `docs`, once there is feedback
    Clock::time_point since = Clock::now();
  };

  void add(List list);
  void add_clicks(const std::string& impression, std::span<const std::uint8_t> clicks);

  /// The latest list first.
  std::string lists_json(Clock::time_point now = Clock::now()) const;
  /// Each complete period with the lists shown at its end, and its share of certain orders, which is null
  /// without any.
  std::string history_json() const;

 private:
  struct Period {
    std::int64_t certain_pairs = 0;
    std::int64_t shown_pairs = 0;

    void operator+=(const Period& other) {
      certain_pairs += other.certain_pairs;
      shown_pairs += other.shown_pairs;
    }
  };

  mutable std::mutex mutex_;
  std::deque<List> lists_;  // the latest first
  EqualPeriods<Period, kPeriods> periods_;
};

/// Clicks a list by arm over time, since the service started. Thread-safe.
class ClickCurve {
 public:
  static constexpr std::size_t kPeriods = 32;
  static constexpr std::uint64_t kLists = 32;  // of the first periods

  /// Counts a list with feedback; a service without arms has one arm, which has no name.
  void count(std::string_view arm, std::span<const std::uint8_t> clicks);
  /// Each complete period: the lists with feedback at its end, and of each arm that had two or more lists
  /// then their number, their mean clicks, and the bounds of 95 %.
  std::string json() const;

 private:
  struct Sums {
    std::int64_t lists = 0;
    std::int64_t clicks = 0;
    std::int64_t squares = 0;
  };
  struct Period {
    std::map<std::string, Sums, std::less<>> arms;

    void operator+=(const Period& other);
  };

  mutable std::mutex mutex_;
  EqualPeriods<Period, kPeriods> periods_{kLists};
};

/// The queries that are asked most, with the list that the learner would show for each without exploring,
/// and the caller's own. Counts are those of Metwally, Agrawal and El Abbadi (2005): a new query takes the
/// place of the rarest with its count, so that any query asked by more than 1/kKept of the lists is among
/// them. Told are the lists that a query had for sure, and no query of which most could be others'.
/// Thread-safe.
class AskedQueries {
 public:
  static constexpr std::size_t kKept = 256;
  static constexpr std::size_t kTold = 10;
  static constexpr std::int64_t kDocs = 10;  // of a list

  /// `own` is empty where requests bring no order of their own.
  void count(const std::string& query, std::span<const DocId> docs, std::span<const std::int32_t> best,
             std::span<const std::int32_t> own);
  /// The most asked first: {"query", "lists", "best", "own"}; "own" may be null.
  std::string json() const;

 private:
  struct Query {
    std::int64_t lists = 0;
    std::int64_t maybe = 0;  // of them, those of queries whose place it took
    std::vector<DocId> best;
    std::vector<DocId> own;
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Query> queries_;
};

/// The raw features of lists that were asked for lately, and how far each feature moves the scores of a
/// model in them. Thread-safe.
class FeatureEffects {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kLists = 16;
  static constexpr std::int64_t kDocs = 30;                 // of a list, evenly from all of its documents
  static constexpr std::int64_t kColumns = 64;              // scored at once
  static constexpr std::int64_t kValues = 100'000;          // of a list, which then has fewer documents
  static constexpr std::int64_t kProducts = 2'000'000'000;  // of all lists, of which then fewer count
  static constexpr std::chrono::seconds kInterval{1};       // takes a list at most so often

  void take(FeatureMatrix raw, Clock::time_point now);
  void forget_lists() {
    const std::lock_guard lock(mutex_);
    lists_.clear();
    taken_.reset();
  }

  struct Effect {
    std::int64_t feature = 0;
    double share = 0.0;      // of the sum of all features' effects
    double direction = 0.0;  // correlation of the feature's value with what it adds, in [−1, 1]
  };
  /// The effect of a feature is the root mean square of what its values add to the differences of scores
  /// within a list, where its mean in the list stands in their place. The largest first; empty before there
  /// is a list, where no feature has any, and for models of so many features that it would take too long.
  std::vector<Effect> of(const ModelScorer& model) const;

 private:
  struct List {
    std::vector<float> values;
    std::int64_t docs = 0;
  };

  mutable std::mutex mutex_;
  std::deque<List> lists_;  // the latest first
  std::optional<Clock::time_point> taken_;
};

}  // namespace olrank
