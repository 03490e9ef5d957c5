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
  std::vector<std::int64_t> first_of(reviews.size());  // the first review of the same pair
  std::int64_t repeated = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool repeats = i > 0 && same(order[i - 1], order[i]);
    first_of[order[i]] = repeats ? first_of[order[i - 1]] : order[i];
    repeated += repeats ? 1 : 0;
  }
  if (repeated == 0) return 0;
  const auto alike = grouped<std::int64_t>(reviews.size(), [&](const auto& add) {
    for (std::int64_t review = 0; review < reviews.size(); ++review) add(first_of[review], review);
  });
  Reviews merged;
  merged.names = std::move(reviews.names);
  merged.highest_rating = reviews.highest_rating;
  std::vector<Mention> said;
  for (std::int64_t first = 0; first < reviews.size(); ++first) {
    if (first_of[first] != first) continue;
    said.clear();
    double sum = 0.0;
    for (const std::int64_t review : alike.of(first)) {
      const auto mentions = reviews.mentions_of(review);
      said.insert(said.end(), mentions.begin(), mentions.end());
      sum += reviews.rating[review];
    }
    merged.add(reviews.user[first], reviews.item[first],
               static_cast<float>(sum / static_cast<double>(alike.of(first).size())), said);
  }
  reviews = std::move(merged);
  return repeated;
}

namespace {

std::uint32_t hash_of_name(std::string_view name) {
  const std::uint64_t hash = std::hash<std::string_view>()(name);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
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

RatingRows sparse_rows(std::span<const PlacedRating> placed, std::int64_t rows) {
  RatingRows sparse;
  sparse.ends.assign(rows + 1, 0);
  sparse.others.reserve(placed.size());
  sparse.ratings.reserve(placed.size());
  for (const PlacedRating& value : placed) {
    ++sparse.ends[value.row + 1];
    sparse.others.push_back(value.other);
    sparse.ratings.push_back(value.rating);
  }
  std::partial_sum(sparse.ends.begin(), sparse.ends.end(), sparse.ends.begin());
  return sparse;
}

RatingRows transposed_rows(const RatingRows& rows, std::int64_t columns) {
  std::vector<PlacedRating> placed;
  placed.reserve(rows.others.size());
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    for (std::int64_t i = 0; i < rows.count(row); ++i)
      placed.push_back({rows.others_of(row)[i], static_cast<std::int32_t>(row), rows.ratings_of(row)[i]});
  }
  std::ranges::stable_sort(placed, {}, &PlacedRating::row);
  return sparse_rows(placed, columns);
}

bool are_rows(std::span<const std::int64_t> ends, std::int64_t rows, std::span<const std::int32_t> numbers,
              std::int64_t limit) {
  return std::ssize(ends) == rows + 1 && ends.front() == 0 && ends.back() == std::ssize(numbers) &&
         std::ranges::is_sorted(ends) &&
         std::ranges::all_of(numbers, [&](std::int32_t number) { return number >= 0 && number < limit; });
}

ReviewCounts counts_of(const Reviews& reviews) {
  ReviewCounts counts = reviews.names.counts();
  counts.reviews = reviews.size();
  counts.mentions = std::ssize(reviews.mentions);
  return counts;
}

ReviewCounts TrainingData::counts() const {
  ReviewCounts counts = counts_of(*reviews);
  counts.reviews = std::ssize(train);
  counts.mentions = 0;
  for (const std::int64_t review : train) counts.mentions += std::ssize(reviews->mentions_of(review));
  return counts;
}

TrainingData make_training_data(const Reviews& reviews, std::vector<std::int64_t> train) {
  std::vector<PlacedRating> placed;
  placed.reserve(train.size());
  for (const std::int64_t review : train)
    placed.push_back({reviews.user[review], reviews.item[review], reviews.rating[review]});
  std::ranges::stable_sort(placed, {},
                           [](const PlacedRating& rating) { return std::pair(rating.row, rating.other); });
  RatingRows by_user = sparse_rows(placed, reviews.names.users.size());
  placed = std::vector<PlacedRating>();  // gives the memory back
  RatingRows by_item = transposed_rows(by_user, reviews.names.items.size());
  return {&reviews, std::move(train), std::move(by_user), std::move(by_item)};
}

std::vector<MentionCount> count_mentions(const TrainingData& data,
                                         const std::vector<std::int32_t>& row_of) {
  std::vector<MentionCount> counts;
  for (const std::int64_t review : data.train) {
    for (const Mention& mention : data.reviews->mentions_of(review))
      counts.push_back(MentionCount::one(row_of[review], mention));
  }
  return added_up(std::move(counts));
}

std::vector<MentionCount> added_up(std::vector<MentionCount> counts) {
  std::ranges::sort(counts, {},
                    [](const MentionCount& count) { return std::pair(count.row, count.feature); });
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
