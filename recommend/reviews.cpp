#include "recommend/reviews.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/io/state_archive.h"

namespace olrank {

void Reviews::add(std::int32_t by, std::int32_t about, float rated, std::span<const Mention> said) {
  user.push_back(by);
  item.push_back(about);
  rating.push_back(rated);
  mentions.insert(mentions.end(), said.begin(), said.end());
  mention_ends.push_back(std::ssize(mentions));
}

std::int64_t merge_repeated_reviews(Reviews& reviews) {
  std::vector<std::int64_t> order(reviews.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto same = [&](std::int64_t a, std::int64_t b) {
    return reviews.user[a] == reviews.user[b] && reviews.item[a] == reviews.item[b];
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return reviews.user[a] != reviews.user[b] ? reviews.user[a] < reviews.user[b]
                                              : reviews.item[a] < reviews.item[b];
  });
  std::vector<std::int64_t> next(reviews.size(), -1);  // the same pair's next review
  std::vector<bool> is_first(reviews.size(), true);
  std::int64_t repeated = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (!same(order[i - 1], order[i])) continue;
    next[order[i - 1]] = order[i];
    is_first[order[i]] = false;
    ++repeated;
  }
  if (repeated == 0) return 0;
  Reviews merged;
  merged.names = std::move(reviews.names);
  merged.highest_rating = reviews.highest_rating;
  std::vector<Mention> said;
  for (std::int64_t first = 0; first < reviews.size(); ++first) {
    if (!is_first[first]) continue;
    said.clear();
    double sum = 0.0;
    std::int64_t count = 0;
    for (std::int64_t review = first; review >= 0; review = next[review]) {
      const auto mentions = reviews.mentions_of(review);
      said.insert(said.end(), mentions.begin(), mentions.end());
      sum += reviews.rating[review];
      ++count;
    }
    merged.add(reviews.user[first], reviews.item[first],
               static_cast<float>(sum / static_cast<double>(count)), said);
  }
  reviews = std::move(merged);
  return repeated;
}

namespace {

std::uint32_t hash_of_name(std::string_view name) {
  const std::uint64_t hash = std::hash<std::string_view>()(name);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

/// Rows by `row_of`; reviews come in an order in which the other side ascends.
RatingRows rows_in_order(const Reviews& reviews, std::span<const std::int64_t> order,
                         const std::vector<std::int32_t>& row_of, const std::vector<std::int32_t>& other_of,
                         std::int64_t rows) {
  RatingRows sparse;
  sparse.ends.assign(rows + 1, 0);
  for (const std::int64_t review : order) ++sparse.ends[row_of[review] + 1];
  for (std::int64_t row = 0; row < rows; ++row) sparse.ends[row + 1] += sparse.ends[row];
  sparse.others.resize(order.size());
  sparse.ratings.resize(order.size());
  std::vector<std::int64_t> next(sparse.ends.begin(), sparse.ends.end() - 1);
  for (const std::int64_t review : order) {
    const std::int64_t place = next[row_of[review]]++;
    sparse.others[place] = other_of[review];
    sparse.ratings[place] = reviews.rating[review];
  }
  return sparse;
}

std::vector<std::int64_t> ordered_by(std::vector<std::int64_t> reviews,
                                     const std::vector<std::int32_t>& number) {
  std::stable_sort(reviews.begin(), reviews.end(),
                   [&](std::int64_t a, std::int64_t b) { return number[a] < number[b]; });
  return reviews;
}

}  // namespace

NameTable::NameTable() : ends_(1, 0), slots_(64) {}

std::size_t NameTable::slot_of(std::string_view name, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].number >= 0) {
    if (slots_[slot].hash == hash && (*this)[slots_[slot].number] == name) return slot;
    slot = (slot + 1) & mask;
  }
  return slot;
}

std::int32_t NameTable::intern(std::string_view name) {
  const std::uint32_t hash = hash_of_name(name);
  const std::size_t slot = slot_of(name, hash);
  if (slots_[slot].number >= 0) return slots_[slot].number;
  if (size() == std::numeric_limits<std::int32_t>::max())
    throw Error("There are more than 2,147,483,647 different names of one sort: use a part of the data.");
  const auto number = static_cast<std::int32_t>(size());
  slots_[slot] = {hash, number};
  text_ += name;
  ends_.push_back(std::ssize(text_));
  if (2 * static_cast<std::size_t>(size()) > slots_.size()) grow();
  return number;
}

std::optional<std::int32_t> NameTable::find(std::string_view name) const {
  const Slot& slot = slots_[slot_of(name, hash_of_name(name))];
  return slot.number >= 0 ? std::optional(slot.number) : std::nullopt;
}

void NameTable::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& taken : old) {
    if (taken.number < 0) continue;
    std::size_t slot = taken.hash & mask;
    while (slots_[slot].number >= 0) slot = (slot + 1) & mask;
    slots_[slot] = taken;
  }
}

void NameTable::save(StateWriter& state, std::string_view name) const {
  state.put_text(fmt::format("{}.text", name), text_);
  state.put(fmt::format("{}.ends", name), ends_);
}

void NameTable::load(StateReader& state, std::string_view name) {
  const std::string text = state.get_text(fmt::format("{}.text", name));
  const auto ends = state.get<std::int64_t>(fmt::format("{}.ends", name));
  *this = NameTable();
  bool valid = !ends.empty() && ends.front() == 0 && ends.back() == std::ssize(text);
  for (std::size_t i = 1; valid && i < ends.size(); ++i) {
    valid = ends[i - 1] <= ends[i] && ends[i] <= std::ssize(text);
    if (valid) intern(std::string_view(text).substr(ends[i - 1], ends[i] - ends[i - 1]));
  }
  if (!valid || size() != std::ssize(ends) - 1)
    state.fail(fmt::format("The names of '{}' are damaged.", name));
}

bool RatingRows::contains(std::int64_t row, std::int32_t other) const {
  const auto all = others_of(row);
  return std::binary_search(all.begin(), all.end(), other);
}

bool are_rows(std::span<const std::int64_t> ends, std::int64_t rows, std::span<const std::int32_t> numbers,
              std::int64_t limit) {
  return std::ssize(ends) == rows + 1 && ends.front() == 0 && ends.back() == std::ssize(numbers) &&
         std::ranges::is_sorted(ends) &&
         std::ranges::all_of(numbers, [&](std::int32_t number) { return number >= 0 && number < limit; });
}

ReviewCounts counts_of(const Reviews& reviews) {
  return {reviews.names.users.size(),
          reviews.names.items.size(),
          reviews.names.features.size(),
          reviews.names.phrases.size(),
          reviews.size(),
          std::ssize(reviews.mentions)};
}

ReviewCounts TrainingData::counts() const {
  ReviewCounts counts = counts_of(*reviews);
  counts.reviews = std::ssize(train);
  counts.mentions = 0;
  for (const std::int64_t review : train) counts.mentions += std::ssize(reviews->mentions_of(review));
  return counts;
}

TrainingData make_training_data(const Reviews& reviews, std::vector<std::int64_t> train) {
  TrainingData data;
  data.reviews = &reviews;
  data.by_user = rows_in_order(reviews, ordered_by(train, reviews.item), reviews.user, reviews.item,
                               reviews.names.users.size());
  data.by_item = rows_in_order(reviews, ordered_by(train, reviews.user), reviews.item, reviews.user,
                               reviews.names.items.size());
  data.train = std::move(train);
  return data;
}

std::vector<MentionCount> count_mentions(const TrainingData& data,
                                         const std::vector<std::int32_t>& row_of) {
  std::vector<MentionCount> counts;
  for (const std::int64_t review : data.train) {
    for (const Mention& mention : data.reviews->mentions_of(review))
      counts.push_back(
          {row_of[review], mention.feature, mention.sentiment > 0 ? 1 : 0, mention.sentiment > 0 ? 0 : 1});
  }
  std::ranges::sort(counts, [](const MentionCount& left, const MentionCount& right) {
    return left.row != right.row ? left.row < right.row : left.feature < right.feature;
  });
  std::size_t merged = 0;
  for (const MentionCount& count : counts) {
    if (merged > 0 && counts[merged - 1].row == count.row && counts[merged - 1].feature == count.feature) {
      counts[merged - 1].positive += count.positive;
      counts[merged - 1].negative += count.negative;
    } else {
      counts[merged++] = count;
    }
  }
  counts.resize(merged);
  return counts;
}

}  // namespace olrank
