#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recommend/name_table.h"

namespace olrank {

/// A feature that a review mentions, the phrase it says about it, and whether that is praise.
struct Mention {
  std::int32_t feature = 0;
  std::int32_t phrase = 0;
  std::int8_t sentiment = 1;  // s: 1 or −1

  friend bool operator==(const Mention&, const Mention&) = default;
};

/// The names of everything that reviews are about; numbers elsewhere are places in these tables.
struct ReviewNames {
  NameTable users;
  NameTable items;
  NameTable features;
  NameTable phrases;

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
  std::vector<std::int64_t> mention_ends = {
      0};  // review r has mentions [mention_ends[r], mention_ends[r+1])

  std::int64_t size() const { return std::ssize(user); }
  std::span<const Mention> mentions_of(std::int64_t review) const {
    return {mentions.data() + mention_ends[review],
            static_cast<std::size_t>(mention_ends[review + 1] - mention_ends[review])};
  }
  std::span<Mention> mentions_of(std::int64_t review) {
    return {mentions.data() + mention_ends[review],
            static_cast<std::size_t>(mention_ends[review + 1] - mention_ends[review])};
  }

  void add(std::int32_t by, std::int32_t about, float rated, std::span<const Mention> said);
};

/// Merges the reviews of a user about one item into the first of them: the mean rating, all mentions.
/// Returns how many it removed.
std::int64_t merge_repeated_reviews(Reviews& reviews);

}  // namespace olrank
