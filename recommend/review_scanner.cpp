#include "recommend/review_scanner.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "core/error.h"
#include "core/text/nearest.h"
#include "core/text/utf8.h"

namespace olrank {
namespace {

constexpr std::array<std::string_view, 4> kReviewKeys = {"user", "item", "rating", "opinions"};

bool is_json_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// Bytes that end a run of plain characters in a string: the quote, the backslash, control characters, and
/// everything that is not ASCII.
constexpr std::array<bool, 256> kEndsPlain = [] {
  std::array<bool, 256> ends{};
  for (int byte = 0; byte < 256; ++byte) ends[byte] = byte < 0x20 || byte >= 0x80;
  ends['"'] = ends['\\'] = true;
  return ends;
}();

void append_utf8(std::string& text, unsigned code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | code >> 18);
    text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

}  // namespace

void ReviewScanner::fail(const char* at, const std::string& sentence) const {
  throw DataError(file_, number_, at - begin_ + 1, sentence);
}

void ReviewScanner::fail_here(std::string_view expected) const {
  if (at_ == end_) fail(at_, fmt::format("The line ends where {} is expected.", expected));
  const std::size_t length = utf8_length({at_, static_cast<std::size_t>(end_ - at_)});
  const auto byte = static_cast<unsigned char>(*at_);
  if (length == 0 || byte < 0x20 || byte == 0x7F)
    fail(at_, fmt::format("Expected {} here, not the byte 0x{:02X}.", expected, byte));
  fail(at_, fmt::format("Expected {} here, not '{}'.", expected, std::string_view(at_, length)));
}

void ReviewScanner::skip_blanks() {
  while (at_ < end_ && is_json_blank(*at_)) ++at_;
}

void ReviewScanner::expect(char wanted, std::string_view meaning) {
  skip_blanks();
  if (at_ == end_ || *at_ != wanted) fail_here(meaning);
  ++at_;
}

bool ReviewScanner::next_is(char wanted) {
  skip_blanks();
  if (at_ == end_ || *at_ != wanted) return false;
  ++at_;
  return true;
}

std::string_view ReviewScanner::read_string(std::string_view meaning) {
  skip_blanks();
  if (at_ == end_ || *at_ != '"') fail_here(meaning);
  const char* const begin = ++at_;
  bool ascii = true;
  for (;;) {
    while (at_ < end_ && !kEndsPlain[static_cast<unsigned char>(*at_)]) ++at_;
    if (at_ == end_) fail(begin - 1, "This string has no closing quote.");
    if (*at_ == '"') break;
    if (*at_ == '\\') return read_escaped(begin);
    if (static_cast<unsigned char>(*at_) < 0x20)
      fail(at_, fmt::format("A string must not hold the control character 0x{:02X}.",
                            static_cast<unsigned char>(*at_)));
    ascii = false;
    ++at_;
  }
  const std::string_view text(begin, at_ - begin);
  if (!ascii) require_utf8(text);
  ++at_;
  return text;
}

std::string_view ReviewScanner::read_escaped(const char* begin) {
  unescaped_.assign(begin, at_);
  for (;;) {
    if (at_ == end_) fail(begin - 1, "This string has no closing quote.");
    if (*at_ == '"') break;
    if (static_cast<unsigned char>(*at_) < 0x20)
      fail(at_, fmt::format("A string must not hold the control character 0x{:02X}.",
                            static_cast<unsigned char>(*at_)));
    if (*at_ != '\\') {
      unescaped_ += *at_++;
      continue;
    }
    append_escape(at_);
  }
  require_utf8({begin, static_cast<std::size_t>(at_ - begin)});
  ++at_;
  return unescaped_;
}

void ReviewScanner::append_escape(const char* backslash) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  ++at_;
  const std::size_t letter = at_ < end_ ? kLetters.find(*at_) : std::string_view::npos;
  if (letter != std::string_view::npos) {
    unescaped_ += kMeanings[letter];
    ++at_;
    return;
  }
  if (at_ == end_ || *at_ != 'u') fail(backslash, "JSON has no such escape.");
  unsigned code = read_hex(backslash);
  if (code >= 0xD800 && code < 0xDC00 && end_ - at_ >= 2 && at_[0] == '\\' && at_[1] == 'u') {
    ++at_;
    const unsigned low = read_hex(backslash);
    code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
  }
  if (code >= 0xD800 && code < 0xE000) fail(backslash, "This is half of a surrogate pair.");
  append_utf8(unescaped_, code);
}

unsigned ReviewScanner::read_hex(const char* backslash) {
  ++at_;  // the u
  unsigned code = 0;
  const char* const digits_end = end_ - at_ >= 4 ? at_ + 4 : end_;
  const auto [end, error] = std::from_chars(at_, digits_end, code, 16);
  if (error != std::errc() || end != at_ + 4)
    fail(backslash, "An escape \\u needs four hexadecimal digits.");
  at_ += 4;
  return code;
}

void ReviewScanner::require_utf8(std::string_view text) const {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) fail(text.data(), "This is not valid UTF-8.");
    text.remove_prefix(length);
  }
}

double ReviewScanner::read_number(std::string_view meaning) {
  skip_blanks();
  if (at_ == end_ || !(*at_ == '-' || (*at_ >= '0' && *at_ <= '9'))) fail_here(meaning);
  // The usual case, one digit, without a call.
  if (*at_ >= '0' && *at_ <= '9' && at_ + 1 < end_ && (at_[1] == ',' || at_[1] == '}' || at_[1] == ']'))
    return *at_++ - '0';
  double value = 0.0;
  const auto [end, error] = std::from_chars(at_, end_, value);
  if (error != std::errc()) fail_here(meaning);
  at_ = end;
  return value;
}

void ReviewScanner::read_rating() {
  skip_blanks();
  const char* const begin = at_;
  const double rating = read_number("the rating, a number");
  if (!(rating >= 1.0 && rating <= reviews_.highest_rating)) {
    fail(begin, fmt::format("A rating must be at least 1 and at most {}, not {}.", reviews_.highest_rating,
                            std::string_view(begin, at_ - begin)));
  }
  rating_ = static_cast<float>(rating);
}

void ReviewScanner::read_opinion() {
  expect('[', "'[' of an opinion [\"feature\", \"phrase\", 1 or -1]");
  Mention mention;
  mention.feature = reviews_.names.features.intern(read_string("the opinion's feature, a string"));
  expect(',', "',' and the opinion's phrase");
  mention.phrase = reviews_.names.phrases.intern(read_string("the opinion's phrase, a string"));
  expect(',', "',' and the opinion's sentiment, 1 or -1");
  skip_blanks();
  const char* const begin = at_;
  const double sentiment = read_number("the opinion's sentiment, 1 or -1");
  if (sentiment != 1.0 && sentiment != -1.0) {
    fail(begin, fmt::format("A sentiment must be 1 or -1, not {}.", std::string_view(begin, at_ - begin)));
  }
  mention.sentiment = static_cast<std::int8_t>(sentiment);
  expect(']', "']' that closes the opinion");
  mentions_.push_back(mention);
}

void ReviewScanner::read_opinions() {
  has_opinions_ = true;
  expect('[', "'[' of the list of opinions");
  if (next_is(']')) return;
  do read_opinion();
  while (next_is(','));
  expect(']', "',' or ']' behind an opinion");
}

void ReviewScanner::read_members() {
  do {
    skip_blanks();
    const char* const begin = at_;
    const std::string_view key = read_string("a key");
    const auto refuse_second = [&](bool given) {
      if (given) fail(begin, fmt::format("The key \"{}\" was given before on this line.", key));
    };
    const std::string_view read = key;
    if (read == "user") {
      refuse_second(user_ >= 0);
      expect(':', "':' behind a key");
      user_ = reviews_.names.users.intern(read_string("the user's name, a string"));
    } else if (read == "item") {
      refuse_second(item_ >= 0);
      expect(':', "':' behind a key");
      item_ = reviews_.names.items.intern(read_string("the item's name, a string"));
    } else if (read == "rating") {
      refuse_second(rating_ >= 0.0F);
      expect(':', "':' behind a key");
      read_rating();
    } else if (read == "opinions") {
      refuse_second(has_opinions_);
      expect(':', "':' behind a key");
      read_opinions();
    } else {
      const std::vector<std::string> known(kReviewKeys.begin(), kReviewKeys.end());
      fail(begin, fmt::format("A review has the keys user, item, rating and opinions, not \"{}\". {}", key,
                              did_you_mean(key, known)));
    }
  } while (next_is(','));
}

void ReviewScanner::read_line(std::string_view line, std::int64_t number) {
  number_ = number;
  begin_ = at_ = line.data();
  end_ = begin_ + line.size();
  skip_blanks();
  if (at_ == end_) return;
  user_ = item_ = -1;
  rating_ = -1.0F;
  has_opinions_ = false;
  mentions_.clear();
  const char* const open = at_;
  expect('{', "'{' of a review {\"user\": …, \"item\": …, \"rating\": …, \"opinions\": […]}");
  if (!next_is('}')) {
    read_members();
    expect('}', "',' or '}' behind a value");
  }
  skip_blanks();
  if (at_ != end_) fail_here("the end of the line");
  for (const auto& [missing, key] :
       {std::pair(user_ < 0, kReviewKeys[0]), std::pair(item_ < 0, kReviewKeys[1]),
        std::pair(rating_ < 0.0F, kReviewKeys[2])}) {
    if (missing) fail(open, fmt::format("This review has no \"{}\".", key));
  }
  reviews_.add(user_, item_, rating_, mentions_);
}

}  // namespace olrank
