#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recommend/reviews.h"

namespace olrank {

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

/// How much there is of everything: what plans of memory need.
struct ReviewCounts {
  std::int64_t users = 0;
  std::int64_t items = 0;
  std::int64_t features = 0;
  std::int64_t phrases = 0;
  std::int64_t reviews = 0;
  std::int64_t mentions = 0;
};
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

}  // namespace olrank
