#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

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

}  // namespace olrank
