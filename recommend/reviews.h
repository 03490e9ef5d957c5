#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

class StateReader;
class StateWriter;

/// Names with numbers from 0, in the order in which they first appeared.
class NameTable {
 public:
  NameTable();

  /// The number of a name, which is added if it is new.
  std::int32_t intern(std::string_view name);
  std::optional<std::int32_t> find(std::string_view name) const;

  std::int64_t size() const { return std::ssize(ends_) - 1; }
  /// Valid until the next intern().
  std::string_view operator[](std::int64_t number) const {
    return {text_.data() + ends_[number], static_cast<std::size_t>(ends_[number + 1] - ends_[number])};
  }

  void save(StateWriter& state, std::string_view name) const;
  void load(StateReader& state, std::string_view name);

  friend bool operator==(const NameTable& a, const NameTable& b) {
    return a.text_ == b.text_ && a.ends_ == b.ends_;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t number = -1;  // −1: free
  };
  std::size_t slot_of(std::string_view name, std::uint32_t hash) const;
  void grow();

  std::string text_;  // all names, one behind the other
  std::vector<std::int64_t> ends_;
  std::vector<Slot> slots_;  // open addressing; their count is a power of two
};

/// A feature that a review mentions, the phrase it says about it, and whether that is praise.
struct Mention {
  std::int32_t feature = 0;
  std::int32_t phrase = 0;
  std::int8_t sentiment = 1;  // s: 1 or −1

  friend bool operator==(const Mention&, const Mention&) = default;
};

/// How much there is of everything: what plans of memory need.
struct ReviewCounts {
  std::int64_t users = 0;
  std::int64_t items = 0;
  std::int64_t features = 0;
  std::int64_t phrases = 0;
  std::int64_t reviews = 0;
  std::int64_t mentions = 0;
};
/// The names of everything that reviews are about; numbers elsewhere are places in these tables.
struct ReviewNames {
  NameTable users;
  NameTable items;
  NameTable features;
  NameTable phrases;

  ReviewCounts counts() const { return {users.size(), items.size(), features.size(), phrases.size()}; }
  friend bool operator==(const ReviewNames&, const ReviewNames&) = default;
};

/// Reviews in the order in which they were read, as flat arrays. Jia, "Toward Reliable Decision-making in
/// Information Systems", PhD thesis, UVA 2022, §4.1: A_ij is `rating`, the tuples (f, o, s) are `mentions`.
struct Reviews {
  ReviewNames names;
  double highest_rating = 5.0;  // N of the scale 1 … N
  std::vector<std::int32_t> user;
  std::vector<std::int32_t> item;
  std::vector<float> rating;
  std::vector<Mention> mentions;
  std::vector<std::int64_t> mention_ends = {0};  // review r has mentions [ends[r], ends[r+1])

  std::int64_t size() const { return std::ssize(user); }
  std::span<const Mention> mentions_of(std::int64_t review) const {
    return {mentions.data() + mention_ends[review],
            static_cast<std::size_t>(mention_ends[review + 1] - mention_ends[review])};
  }

  void add(std::int32_t by, std::int32_t about, float rated, std::span<const Mention> said);
};

/// Merges the reviews of a user about one item into the first of them: the mean rating, all mentions.
/// Returns how many it removed.
std::int64_t merge_repeated_reviews(Reviews& reviews);

/// The ratings of each user, or of each item, with the other side ascending: A as sparse rows.
struct RatingRows {
  std::vector<std::int64_t> ends = {0};
  std::vector<std::int32_t> others;  // the item of a user's rating, the user of an item's
  std::vector<float> ratings;

  std::int64_t rows() const { return std::ssize(ends) - 1; }
  std::int64_t count(std::int64_t row) const { return ends[row + 1] - ends[row]; }
  std::span<const std::int32_t> others_of(std::int64_t row) const {
    return {others.data() + ends[row], static_cast<std::size_t>(count(row))};
  }
  std::span<const float> ratings_of(std::int64_t row) const {
    return {ratings.data() + ends[row], static_cast<std::size_t>(count(row))};
  }
  bool contains(std::int64_t row, std::int32_t other) const;
};

/// An entry of RatingRows.
struct PlacedRating {
  std::int32_t row;
  std::int32_t other;
  float rating;
};
/// `placed` is in the order of rows, and within a row in that of the other side.
RatingRows sparse_rows(std::span<const PlacedRating> placed, std::int64_t rows);
/// Returns the entries by their other side.
RatingRows transposed_rows(const RatingRows& rows, std::int64_t columns);

/// Values of several rows, one row after another.
template <class T>
struct Groups {
  std::vector<std::int64_t> begin{0};
  std::vector<T> values;

  std::span<const T> of(std::int64_t row) const {
    return {values.data() + begin[row], values.data() + begin[row + 1]};
  }
};
/// Groups by row the values that visit(add) hands to add(row, value), in their order. visit() runs twice
/// and hands over the same.
template <class T, class Visit>
Groups<T> grouped(std::int64_t rows, const Visit& visit) {
  Groups<T> groups;
  groups.begin.assign(rows + 1, 0);
  visit([&](std::int64_t row, const T&) { ++groups.begin[row + 1]; });
  std::partial_sum(groups.begin.begin(), groups.begin.end(), groups.begin.begin());
  groups.values.resize(groups.begin.back());
  std::vector<std::int64_t> next(groups.begin.begin(), groups.begin.end() - 1);
  visit([&](std::int64_t row, const T& value) { groups.values[next[row]++] = value; });
  return groups;
}

/// Whether `ends` are those of so many rows, whose numbers are below `limit`: files may hold anything.
bool are_rows(std::span<const std::int64_t> ends, std::int64_t rows, std::span<const std::int32_t> numbers,
              std::int64_t limit);

ReviewCounts counts_of(const Reviews& reviews);

/// A recommender learns from some reviews of a set, no two of which are by one user about one item. Numbers
/// of users, items, features and phrases are those of the whole set.
struct TrainingData {
  const Reviews* reviews = nullptr;  // outlives this
  std::vector<std::int64_t> train;   // numbers of reviews, ascending
  RatingRows by_user;
  RatingRows by_item;

  ReviewCounts counts() const;  // of the training; names of the whole set
};

TrainingData make_training_data(const Reviews& reviews, std::vector<std::int64_t> train);

/// How often a user, or the users of an item, mentioned a feature with each sentiment.
struct MentionCount {
  std::int32_t row = 0;
  std::int32_t feature = 0;
  std::int32_t positive = 0;
  std::int32_t negative = 0;

  static MentionCount one(std::int32_t row, const Mention& mention) {
    return {row, mention.feature, mention.sentiment > 0 ? 1 : 0, mention.sentiment > 0 ? 0 : 1};
  }
};

/// By row, then by feature; counts of one feature in a row are added up.
std::vector<MentionCount> added_up(std::vector<MentionCount> counts);
/// Counts of the training; a row is the review's user or item, as `row_of` says.
std::vector<MentionCount> count_mentions(const TrainingData& data, const std::vector<std::int32_t>& row_of);

}  // namespace olrank
