#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "recommend/review_reader.h"
#include "tests/fuzz/promise.h"

namespace olrank::fuzz {

/// Reviews as JSON lines: a DataError, or reviews that their own lines reproduce.
inline void check_reviews(std::string_view bytes) {
  is_taken<DataError>([&] {
    const Reviews reviews = parse_reviews(bytes, "fuzz");
    promise(reviews.size() >= 1 && reviews.mention_ends.size() == reviews.user.size() + 1);
    std::string lines;
    for (std::int64_t review = 0; review < reviews.size(); ++review) {
      promise(reviews.rating[review] >= 1.0F && reviews.rating[review] <= 5.0F);
      lines += review_line(reviews, review);
    }
    const Reviews again = parse_reviews(lines, "again");
    promise(again.user == reviews.user && again.item == reviews.item && again.rating == reviews.rating);
    promise(again.mentions == reviews.mentions && again.mention_ends == reviews.mention_ends);
    promise(again.names == reviews.names);
  });
}

inline constexpr Target kTargets[] = {
    {"reviews", check_reviews, "0123456789{}[]\":,.-eE\\u\n\r\t \xC3\xFF"}};

}  // namespace olrank::fuzz
