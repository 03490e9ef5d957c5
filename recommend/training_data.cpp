#include "recommend/training_data.h"

#include <algorithm>
#include <utility>

namespace olrank {
namespace {

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

bool RatingRows::contains(std::int64_t row, std::int32_t other) const {
  const auto all = others_of(row);
  return std::binary_search(all.begin(), all.end(), other);
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

}  // namespace olrank
