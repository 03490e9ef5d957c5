#include "recommend/review_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/io/text_lines.h"
#include "core/random/rng_stream.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::size_t kWrittenPiece = std::size_t{1} << 16;
constexpr std::size_t kLongestReviewLine = std::size_t{64} << 20;

constexpr std::string_view kShape =
    R"({"user": "...", "item": "...", "rating": 3, "opinions": [["feature", "phrase", 1 or -1]]})";

/// Reads lines of JSON of one shape, kShape. Keys may come in any order; "opinions" may be left out.
class ReviewLines final : public JsonHandler {
 public:
  /// `file` is for messages. Reviews are added to `reviews`, whose scale their ratings must be in.
  ReviewLines(std::string file, Reviews& reviews) : file_(std::move(file)), reviews_(reviews) {}

  /// Adds the review of a line, which has no line break; blank lines have none. Throws DataError with the
  /// number of the line and the column in bytes.
  void read_line(std::string_view line, std::int64_t number) {
    number_ = number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    place_ = kLine;
    seen_ = {};
    mentions_.clear();
    parse_json_events(line, *this);
    column = line.find('{') + 1;
    for (int key = kUser; key <= kRating; ++key) {
      if (!seen_[key]) fail("This review has no \"{}\".", kKeys[key]);
    }
    reviews_.add(user_, item_, rating_, mentions_);
  }

  bool null() override { refuse(); }
  bool boolean(bool) override { refuse(); }
  bool number_integer(std::int64_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) override { return number(static_cast<double>(value)); }
  bool number_float(const JsonNumber& value) override { return number(value.value()); }
  bool string(std::string& value) override {
    if (place_ == kReview && key_ == kUser) {
      user_ = reviews_.names.users.intern(value);
    } else if (place_ == kReview && key_ == kItem) {
      item_ = reviews_.names.items.intern(value);
    } else if (place_ == kOpinion && part_ == 0) {
      mention_.feature = reviews_.names.features.intern(value);
      ++part_;
    } else if (place_ == kOpinion && part_ == 1) {
      mention_.phrase = reviews_.names.phrases.intern(value);
      ++part_;
    } else {
      refuse();
    }
    return true;
  }
  bool start_object() override {
    if (place_ != kLine) refuse();
    place_ = kReview;
    return true;
  }
  bool key(std::string& name) override {
    key_ = static_cast<int>(std::find(kKeys.begin(), kKeys.end(), name) - kKeys.begin());
    if (key_ == std::ssize(kKeys)) {
      const std::vector<std::string> known(kKeys.begin(), kKeys.end());
      fail("A review has the keys user, item, rating and opinions, not \"{}\". {}", name,
           did_you_mean(name, known));
    }
    if (seen_[key_]) fail("The key \"{}\" was given before on this line.", name);
    seen_[key_] = true;
    return true;
  }
  bool end_object() override {
    place_ = kLine;
    return true;
  }
  bool start_array() override {
    const bool is_list = place_ == kReview && key_ == kOpinions;
    if (!is_list && place_ != kOpinionList) refuse();
    place_ = is_list ? kOpinionList : kOpinion;
    part_ = 0;
    return true;
  }
  bool end_array() override {
    if (place_ == kOpinion) {
      if (part_ != 3) fail("An opinion lacks a part: [\"feature\", \"phrase\", 1 or -1].");
      mentions_.push_back(mention_);
    }
    place_ = place_ == kOpinion ? kOpinionList : kReview;
    return true;
  }
  void invalid(std::size_t byte, Fault fault) override {
    if (fault == Fault::kSyntax) column = byte;
    fail("{}", fault == Fault::kSyntax ? "The line is not valid JSON from here on."
                                       : "The number is out of range.");
  }

 private:
  enum Place { kLine, kReview, kOpinionList, kOpinion };
  enum Key { kUser, kItem, kRating, kOpinions };
  static constexpr std::array<std::string_view, 4> kKeys = {"user", "item", "rating", "opinions"};

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> sentence, Args&&... args) const {
    throw_data_error(file_, number_, static_cast<std::int64_t>(column), sentence,
                     std::forward<Args>(args)...);
  }
  [[noreturn]] void refuse() const { fail("This value has no place here; a review is {}.", kShape); }

  bool number(double value) {
    if (place_ == kReview && key_ == kRating) {
      if (!(value >= 1.0 && value <= reviews_.highest_rating))
        fail("A rating must be at least 1 and at most {}, not {}.", reviews_.highest_rating, value);
      rating_ = static_cast<float>(value);
    } else if (place_ == kOpinion && part_ == 2) {
      if (value != 1.0 && value != -1.0) fail("A sentiment must be 1 or -1, not {}.", value);
      mention_.sentiment = static_cast<std::int8_t>(value);
      ++part_;
    } else {
      refuse();
    }
    return true;
  }

  std::string file_;
  Reviews& reviews_;
  std::int64_t number_ = 0;
  Place place_ = kLine;
  int key_ = 0;
  std::array<bool, 4> seen_{};
  int part_ = 0;  // of an opinion
  std::int32_t user_ = 0;
  std::int32_t item_ = 0;
  float rating_ = 0.0F;
  Mention mention_;
  std::vector<Mention> mentions_;
};

Reviews reviews_in(TextLines lines, double highest_rating) {
  Reviews reviews;
  reviews.highest_rating = highest_rating;
  ReviewLines reader(lines.file(), reviews);
  while (lines.next()) reader.read_line(lines.line(), lines.number());
  if (reviews.size() == 0) throw DataError(lines.file(), 0, 0, "This file has no reviews.");
  return reviews;
}

}  // namespace

Reviews read_reviews(const std::filesystem::path& file, double highest_rating) {
  return reviews_in(TextLines::of_file(file, kLongestReviewLine), highest_rating);
}

Reviews parse_reviews(std::string_view text, const std::string& name, double highest_rating) {
  return reviews_in(TextLines::of_memory(text, name), highest_rating);
}

std::string review_line(const Reviews& reviews, std::int64_t review) {
  std::string line = "{\"user\":";
  append_json_string(line, reviews.names.users[reviews.user[review]]);
  line += ",\"item\":";
  append_json_string(line, reviews.names.items[reviews.item[review]]);
  fmt::format_to(std::back_inserter(line), ",\"rating\":{},\"opinions\":[", reviews.rating[review]);
  bool first = true;
  for (const Mention& mention : reviews.mentions_of(review)) {
    line += first ? "[" : ",[";
    first = false;
    append_json_string(line, reviews.names.features[mention.feature]);
    line += ',';
    append_json_string(line, reviews.names.phrases[mention.phrase]);
    line += mention.sentiment > 0 ? ",1]" : ",-1]";
  }
  line += "]}\n";
  return line;
}

void write_reviews(const Reviews& reviews, const std::filesystem::path& file) {
  AtomicFile target(file);
  const std::unique_ptr<Compressor> compressor = Compressor::make(
      compression_of_name(file.string()), [&](std::string_view bytes) { target.write(bytes); });
  std::string lines;
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    lines += review_line(reviews, review);
    if (lines.size() < kWrittenPiece && review + 1 < reviews.size()) continue;
    compressor->write(lines);
    lines.clear();
  }
  compressor->finish();
  target.commit();
}

namespace {

/// Reviews and mentions that are still there.
struct Kept {
  std::vector<bool> reviews;
  std::vector<bool> features;
};

/// Calls use(feature) once for each different feature that a review still mentions.
template <class Use>
void for_features(const Reviews& reviews, std::int64_t review, const Kept& kept,
                  std::vector<std::int64_t>& seen_in, Use use) {
  for (const Mention& mention : reviews.mentions_of(review)) {
    if (!kept.features[mention.feature] || seen_in[mention.feature] == review) continue;
    seen_in[mention.feature] = review;
    use(mention.feature);
  }
}

std::vector<std::int64_t> reviews_by_feature(const Reviews& reviews, const Kept& kept) {
  std::vector<std::int64_t> counts(reviews.names.features.size(), 0);
  std::vector<std::int64_t> seen_in(counts.size(), -1);
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (kept.reviews[review])
      for_features(reviews, review, kept, seen_in, [&](std::int32_t feature) { ++counts[feature]; });
  }
  return counts;
}

/// Drops features below their support; whether there were any.
bool drop_features(const Reviews& reviews, const ReviewSupport& support, Kept& kept) {
  const std::vector<std::int64_t> counts = reviews_by_feature(reviews, kept);
  bool dropped = false;
  for (std::size_t feature = 0; feature < counts.size(); ++feature) {
    if (!kept.features[feature] || counts[feature] >= support.feature_reviews) continue;
    kept.features[feature] = false;
    dropped = true;
  }
  return dropped;
}

/// Drops reviews with too few features, and those of items and users with too few reviews.
bool drop_reviews(const Reviews& reviews, const ReviewSupport& support, Kept& kept) {
  std::vector<std::int64_t> seen_in(reviews.names.features.size(), -1);
  std::vector<std::int64_t> by_item(reviews.names.items.size(), 0);
  std::vector<std::int64_t> by_user(reviews.names.users.size(), 0);
  bool dropped = false;
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (!kept.reviews[review]) continue;
    std::int64_t features = 0;
    for_features(reviews, review, kept, seen_in, [&](std::int32_t) { ++features; });
    if (features < support.review_features) {
      kept.reviews[review] = false;
      dropped = true;
      continue;
    }
    ++by_item[reviews.item[review]];
    ++by_user[reviews.user[review]];
  }
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (!kept.reviews[review]) continue;
    if (by_item[reviews.item[review]] >= support.item_reviews &&
        by_user[reviews.user[review]] >= support.user_reviews)
      continue;
    kept.reviews[review] = false;
    dropped = true;
  }
  return dropped;
}

Reviews kept_reviews(const Reviews& reviews, const Kept& kept) {
  Reviews left;
  left.highest_rating = reviews.highest_rating;
  std::vector<Mention> said;
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (!kept.reviews[review]) continue;
    said.clear();
    const std::int32_t user = left.names.users.intern(reviews.names.users[reviews.user[review]]);
    const std::int32_t item = left.names.items.intern(reviews.names.items[reviews.item[review]]);
    for (Mention mention : reviews.mentions_of(review)) {
      if (!kept.features[mention.feature]) continue;
      mention.feature = left.names.features.intern(reviews.names.features[mention.feature]);
      mention.phrase = left.names.phrases.intern(reviews.names.phrases[mention.phrase]);
      said.push_back(mention);
    }
    left.add(user, item, reviews.rating[review], said);
  }
  return left;
}

Kept everything(const Reviews& reviews) {
  return {std::vector<bool>(reviews.size(), true), std::vector<bool>(reviews.names.features.size(), true)};
}

/// share · count, rounded up with the probability of its fraction.
std::int64_t rounded_share(double share, std::int64_t count, RngStream& random) {
  const double wanted = share * static_cast<double>(count);
  const double whole = std::floor(wanted);
  return static_cast<std::int64_t>(whole) + (random.uniform() < wanted - whole ? 1 : 0);
}

}  // namespace

ReviewCounts filter_reviews(Reviews& reviews, const ReviewSupport& support) {
  Kept kept = everything(reviews);
  for (;;) {
    const bool features = drop_features(reviews, support, kept);
    const bool some_reviews = drop_reviews(reviews, support, kept);
    if (!features && !some_reviews) break;
  }
  const ReviewCounts before = counts_of(reviews);
  reviews = kept_reviews(reviews, kept);
  const ReviewCounts left = counts_of(reviews);
  return {before.users - left.users,     before.items - left.items,     before.features - left.features,
          before.phrases - left.phrases, before.reviews - left.reviews, before.mentions - left.mentions};
}

void keep_frequent_features(Reviews& reviews, std::int64_t count) {
  Kept kept = everything(reviews);
  const std::vector<std::int64_t> counts = reviews_by_feature(reviews, kept);
  std::vector<std::int32_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return counts[a] > counts[b]; });
  for (std::size_t place = static_cast<std::size_t>(count); place < order.size(); ++place)
    kept.features[order[place]] = false;
  reviews = kept_reviews(reviews, kept);
}

ReviewSplit split_reviews(const Reviews& reviews, const SplitSettings& settings) {
  const std::int64_t users = reviews.names.users.size();
  std::vector<std::vector<std::int64_t>> by_user(users);
  for (std::int64_t review = 0; review < reviews.size(); ++review)
    by_user[reviews.user[review]].push_back(review);
  const PhiloxKey key = make_key({.seed = settings.seed, .purpose = Purpose::kSplit});
  ReviewSplit split;
  const double all =
      settings.by == SplitBy::kReviews ? 1.0 : settings.train_share + settings.validation_share;
  for (std::int64_t user = 0; user < users; ++user) {
    std::vector<std::int64_t>& own = by_user[user];
    RngStream random(key, static_cast<std::uint32_t>(user));
    const bool is_test_user = random.uniform() < settings.test_users;
    if (settings.by == SplitBy::kUsers && is_test_user) {
      split.test.insert(split.test.end(), own.begin(), own.end());
      continue;
    }
    random.shuffle(std::span<std::int64_t>(own));
    const auto count = std::ssize(own);
    const std::int64_t train = std::min(rounded_share(settings.train_share / all, count, random), count);
    const double left_share = 1.0 - settings.train_share / all;
    const double validation_of_left =
        left_share > 0.0 ? std::min(settings.validation_share / all / left_share, 1.0) : 0.0;
    const std::int64_t validation = rounded_share(validation_of_left, count - train, random);
    split.train.insert(split.train.end(), own.begin(), own.begin() + train);
    split.validation.insert(split.validation.end(), own.begin() + train, own.begin() + train + validation);
    split.test.insert(split.test.end(), own.begin() + train + validation, own.end());
  }
  for (auto* part : {&split.train, &split.validation, &split.test}) std::sort(part->begin(), part->end());
  return split;
}

}  // namespace olrank
