#include "recommend/review_reader.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/json.h"
#include "core/text/message_text.h"

namespace olrank {
namespace {

constexpr std::size_t kReadPiece = std::size_t{1} << 16;
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
      if (!seen_[key]) fail(fmt::format("This review has no \"{}\".", kKeys[key]));
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
      fail(fmt::format("A review has the keys user, item, rating and opinions, not \"{}\". {}", name,
                       did_you_mean(name, known)));
    }
    if (seen_[key_]) fail(fmt::format("The key \"{}\" was given before on this line.", name));
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
    fail(fault == Fault::kSyntax ? "The line is not valid JSON from here on."
                                 : "The number is out of range.");
  }

 private:
  enum Place { kLine, kReview, kOpinionList, kOpinion };
  enum Key { kUser, kItem, kRating, kOpinions };
  static constexpr std::array<std::string_view, 4> kKeys = {"user", "item", "rating", "opinions"};

  [[noreturn]] void fail(const std::string& sentence) const {
    throw DataError(file_, number_, static_cast<std::int64_t>(column), sentence);
  }
  [[noreturn]] void refuse() const {
    fail(fmt::format("This value has no place here; a review is {}.", kShape));
  }

  bool number(double value) {
    if (place_ == kReview && key_ == kRating) {
      if (!(value >= 1.0 && value <= reviews_.highest_rating))
        fail(fmt::format("A rating must be at least 1 and at most {}, not {}.", reviews_.highest_rating,
                         value));
      rating_ = static_cast<float>(value);
    } else if (place_ == kOpinion && part_ == 2) {
      if (value != 1.0 && value != -1.0) fail(fmt::format("A sentiment must be 1 or -1, not {}.", value));
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

Reviews read_review_stream(ByteStream& stream, const std::string& name, double highest_rating) {
  Reviews reviews;
  reviews.highest_rating = highest_rating;
  ReviewLines lines(name, reviews);
  std::vector<char> buffer(kReadPiece);
  std::size_t held = 0;  // bytes of an unfinished line at the beginning of the buffer
  std::int64_t line = 0;
  for (;;) {
    if (held == buffer.size()) {
      if (held >= kLongestReviewLine)
        throw DataError(name, line + 1, 0, "A line must not be longer than 64 MiB.");
      buffer.resize(2 * buffer.size());
    }
    const std::size_t count = stream.read({buffer.data() + held, buffer.size() - held});
    if (count == 0) break;
    const char* begin = buffer.data();
    const char* const end = begin + held + count;
    const char* search = begin + held;
    while (const void* found = std::memchr(search, '\n', end - search)) {
      const char* const line_end = static_cast<const char*>(found);
      lines.read_line({begin, static_cast<std::size_t>(line_end - begin)}, ++line);
      begin = search = line_end + 1;
    }
    held = end - begin;
    std::memmove(buffer.data(), begin, held);
  }
  if (held > 0) lines.read_line({buffer.data(), held}, ++line);
  if (reviews.size() == 0) throw DataError(name, 0, 0, "This file has no reviews.");
  return reviews;
}

}  // namespace

Reviews read_reviews(const std::filesystem::path& file, double highest_rating) {
  const std::string name = file.string();
  const Descriptor descriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) throw IoError("read", name, errno);
  try {
    const std::unique_ptr<ByteStream> stream = descriptor_stream(descriptor.number(), name);
    return read_review_stream(*stream, name, highest_rating);
  } catch (const BrokenStream& broken) {
    throw DataError(name, 0, 0, broken.what());
  }
}

Reviews parse_reviews(std::string_view text, const std::string& name, double highest_rating) {
  const std::unique_ptr<ByteStream> stream = decompressed(memory_source(text), Compression::kNone);
  return read_review_stream(*stream, name, highest_rating);
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
    if (lines.size() < kReadPiece && review + 1 < reviews.size()) continue;
    compressor->write(lines);
    lines.clear();
  }
  compressor->finish();
  target.commit();
}

}  // namespace olrank
