#include "sim/feedback_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace olrank {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMostShown = 1'000'000;
constexpr int kNumberOutOfRange = 406;  // nlohmann's error ID

/// Iterates over the bytes of a line for the parser; `reached` is how far it has read.
class LineBytes {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineBytes(const char* at, std::size_t* reached) : at_(at), reached_(reached) {}
  const char& operator*() const { return *at_; }
  LineBytes& operator++() {
    ++at_;
    ++*reached_;
    return *this;
  }
  LineBytes operator++(int) {
    LineBytes before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const LineBytes& a, const LineBytes& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  std::size_t* reached_;
};

bool in_number_or_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' || c == '-' || c == '.';
}

/// Handles the parser's events without building a JSON document.
class LineReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  LineReader(std::string_view text, const std::size_t& reached, FeedbackLine& line)
      : text_(text), reached_(reached), line_(line) {}

  std::optional<FeedbackLine::Failure> take_failure() { return std::move(failure_); }

  /// Checks that need the whole line.
  void finish() {
    if (failure_) return;
    if (!has_[kQid] && has_config_) {
      line_.blank = true;
    } else if (!has_[kQid]) {
      fail(1, "The line has no 'qid'.");
    } else if (!has_[kShown]) {
      fail(1, "The line has no 'shown'.");
    } else if (!has_[kClicks]) {
      fail(1, "The line has no 'clicks'.");
    }
  }

  bool null() { return other_scalar(); }
  bool boolean(bool value) {
    if (in_list(kClicks)) return add_click(value ? 1 : 0);
    return other_scalar();
  }
  bool number_integer(number_integer_t value) {
    if (in_list(kShown)) return add_shown({value, "", column_of_word()});
    if (in_list(kClicks)) return add_click(value);
    if (in_list(kRewards)) return add_reward(static_cast<double>(value));
    if (is_value_of(kQid)) return set_qid(fmt::format("{}", value), column_of_word());
    return other_scalar();
  }
  bool number_unsigned(number_unsigned_t value) {
    constexpr auto kLargest = static_cast<number_unsigned_t>(std::numeric_limits<number_integer_t>::max());
    if (value <= kLargest) return number_integer(static_cast<number_integer_t>(value));
    if (in_list(kRewards)) return add_reward(static_cast<double>(value));
    if (is_value_of(kQid)) return set_qid(fmt::format("{}", value), column_of_word());
    return other_scalar();
  }
  bool number_float(number_float_t value, const string_t&) {
    return in_list(kRewards) ? add_reward(value) : other_scalar();
  }
  bool string(string_t& value) {
    if (in_list(kShown)) return add_shown({std::nullopt, value, column_of_text()});
    if (is_value_of(kQid)) return set_qid(value, column_of_text());
    return wrong_value(column_of_text());
  }
  bool binary(binary_t&) { return other_scalar(); }

  bool start_object(std::size_t) {
    if (depth_ > 0 && !wrong_value(column_of_bracket())) return false;
    ++depth_;
    return true;
  }
  bool key(string_t& name) {
    if (depth_ != 1) return true;
    field_ = name == "qid"       ? kQid
             : name == "shown"   ? kShown
             : name == "clicks"  ? kClicks
             : name == "rewards" ? kRewards
                                 : kOther;
    has_config_ = has_config_ || name == "config";
    if (field_ == kOther) return true;
    if (has_[field_]) return fail(column_of_text(), fmt::format("The line has '{}' twice.", name));
    has_[field_] = true;
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    if (is_value_of(kShown)) {
      line_.shown_column = column_of_bracket();
    } else if (is_value_of(kClicks)) {
      line_.clicks_column = column_of_bracket();
    } else if (is_value_of(kRewards)) {
      line_.rewards_column = column_of_bracket();
    } else if (!wrong_value(column_of_bracket())) {
      return false;
    }
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    if (error.id == kNumberOutOfRange) {
      return fail(column_of_word(), "The number is out of range for a double.");
    }
    if (position > text_.size()) {
      return fail(std::ssize(text_) + 1, "The JSON of this line is incomplete.");
    }
    return fail(static_cast<std::int64_t>(std::max<std::size_t>(position, 1)),
                "The line is not valid JSON from here on.");
  }

 private:
  enum Field { kQid, kShown, kClicks, kRewards, kOther };

  bool is_value_of(Field field) const { return depth_ == 1 && field_ == field; }
  bool in_list(Field field) const { return depth_ == 2 && field_ == field; }

  bool fail(std::int64_t column, std::string sentence) {
    failure_ = FeedbackLine::Failure{column, std::move(sentence)};
    return false;
  }

  bool other_scalar() { return wrong_value(column_of_word()); }

  /// True if the value belongs to a key that is ignored.
  bool wrong_value(std::int64_t column) {
    if (depth_ == 0) {
      return fail(column, R"(A line must be an object: {"qid": ..., "shown": [...], "clicks": [...]}.)");
    }
    switch (field_) {
      case kQid:
        return fail(column, "'qid' must be a string or an integer.");
      case kShown:
        return fail(column, depth_ == 1 ? "'shown' must be a list of documents."
                                        : "A shown document must be its index within the query, from 0, "
                                          "or its name as a string.");
      case kClicks:
        return fail(column, depth_ == 1 ? "'clicks' must be a list with one entry for each shown document."
                                        : "A click must be 0 or 1, or false or true.");
      case kRewards:
        return fail(column, depth_ == 1 ? "'rewards' must be a list with one entry for each shown document."
                                        : "A reward must be a number of at least 0.");
      case kOther:
        break;
    }
    return true;
  }

  bool set_qid(std::string qid, std::int64_t column) {
    line_.qid = std::move(qid);
    line_.qid_column = column;
    return true;
  }
  bool add_shown(ShownDoc doc) {
    if (line_.shown.size() == kMostShown) return fail(doc.column, too_many());
    line_.shown.push_back(std::move(doc));
    return true;
  }
  bool add_click(number_integer_t value) {
    if (value != 0 && value != 1) return other_scalar();
    if (line_.clicks.size() == kMostShown) return fail(column_of_word(), too_many());
    line_.clicks.push_back(static_cast<std::uint8_t>(value));
    return true;
  }

  bool add_reward(double value) {
    if (!(value >= 0.0)) return other_scalar();
    if (line_.rewards.size() == kMostShown) return fail(column_of_word(), too_many());
    line_.rewards.push_back(value);
    return true;
  }

  static std::string too_many() {
    return fmt::format("A list of more than {} documents was never shown.", kMostShown);
  }

  /// Returns the column of the bracket just read.
  std::int64_t column_of_bracket() const { return static_cast<std::int64_t>(reached_); }

  /// Start of the number or word just read. The parser finds the end of a number by reading the byte after
  /// it, so one more byte may have been read.
  std::int64_t column_of_word() const {
    std::size_t begin = reached_;
    if (begin > 0 && !in_number_or_word(text_[begin - 1])) --begin;
    while (begin > 0 && in_number_or_word(text_[begin - 1])) --begin;
    return static_cast<std::int64_t>(begin) + 1;
  }

  /// Start of the string just read: a quote inside it follows an odd number of backslashes.
  std::int64_t column_of_text() const {
    for (std::size_t quote = reached_ - 1; quote > 0;) {
      if (text_[--quote] != '"') continue;
      std::size_t backslashes = 0;
      while (backslashes < quote && text_[quote - backslashes - 1] == '\\') ++backslashes;
      if (backslashes % 2 == 0) return static_cast<std::int64_t>(quote) + 1;
    }
    return 1;
  }

  std::string_view text_;
  const std::size_t& reached_;
  FeedbackLine& line_;
  std::optional<FeedbackLine::Failure> failure_;
  std::int64_t depth_ = 0;
  Field field_ = kOther;  // the field whose value is being read
  bool has_[kOther] = {};
  bool has_config_ = false;
};

}  // namespace

std::optional<FeedbackLine::Failure> parse_feedback_line(std::string_view text, FeedbackLine& line) {
  line.shown.clear();
  line.clicks.clear();
  line.rewards.clear();
  line.blank = text.find_first_not_of(kBlanks) == std::string_view::npos;
  if (line.blank) return std::nullopt;
  std::size_t reached = 0;
  LineReader reader(text, reached, line);
  nlohmann::json::sax_parse(LineBytes(text.data(), &reached),
                            LineBytes(text.data() + text.size(), &reached), &reader);
  reader.finish();
  return reader.take_failure();
}

}  // namespace olrank
