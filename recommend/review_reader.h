#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/settings/enum_names.h"
#include "recommend/reviews.h"

namespace olrank {

/// Reads reviews as JSON lines, plain or compressed (.gz, .zst). Throws DataError for the first line that
/// breaks the format, with its column in bytes, and for a file without a review; IoError for a file that
/// cannot be read.
Reviews read_reviews(const std::filesystem::path& file, double highest_rating = 5.0);
/// Reads reviews from a text; `name` is for messages.
Reviews parse_reviews(std::string_view text, const std::string& name, double highest_rating = 5.0);

/// One line of such a file, with its line break.
std::string review_line(const Reviews& reviews, std::int64_t review);
/// Writes reviews as JSON lines, atomically, compressed as the name says.
void write_reviews(const Reviews& reviews, const std::filesystem::path& file);

/// So much must remain of reviews. Jia, PhD thesis, UVA 2022, §4.1: recursive filtering by the support of
/// features, the features of a review and the reviews of an item; its thresholds are not printed.
struct ReviewSupport {
  std::int64_t feature_reviews = 0;  // reviews that mention a feature
  std::int64_t review_features = 0;  // different features that a review mentions
  std::int64_t item_reviews = 0;     // reviews of an item
  std::int64_t user_reviews = 0;     // reviews by a user
};

/// Removes mentions of features, reviews, items and users without enough support, again and again until all
/// that is left has it; names that nothing uses any more go too. Returns how much it removed.
ReviewCounts filter_reviews(Reviews& reviews, const ReviewSupport& support);

/// Keeps only mentions of the `count` features that most reviews mention, on ties those that came first.
void keep_frequent_features(Reviews& reviews, std::int64_t count);

/// kReviews: each user's reviews go to the parts by shares. kUsers: some users are test users with all
/// their reviews, as if they were new; the reviews of the others go to training and validation.
enum class SplitBy { kReviews, kUsers };
template <>
struct EnumNames<SplitBy> {
  static constexpr std::array values = names_in_order<SplitBy>("reviews", "users");
};

/// Jia, PhD thesis, UVA 2022, §4.1.4: 80/10/10; §4.2.4: 5 % of the users for cold start.
struct SplitSettings {
  SplitBy by = SplitBy::kReviews;
  double train_share = 0.8;
  double validation_share = 0.1;  // by reviews, the test part is the rest
  double test_users = 0.05;       // by users, their share
  std::uint64_t seed = 1;
};

/// Numbers of reviews, ascending in each part.
struct ReviewSplit {
  std::vector<std::int64_t> train;
  std::vector<std::int64_t> validation;
  std::vector<std::int64_t> test;
};

/// Draws the split. A user's draws depend on the seed and the user's number alone. A part gets r
/// times its share of a user's r reviews, rounded up or down at random so that shares hold on average.
ReviewSplit split_reviews(const Reviews& reviews, const SplitSettings& settings);

}  // namespace olrank
