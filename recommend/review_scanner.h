#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recommend/reviews.h"

namespace olrank {

/// Reads lines of JSON of one shape, {"user": …, "item": …, "rating": …, "opinions": [["feature", "phrase",
/// 1 or -1], …]}, without building values in between. Keys may come in any order; "opinions" may be left
/// out.
class ReviewScanner {
 public:
  /// `file` is for messages. Reviews are added to `reviews`, whose scale their ratings must be in.
  ReviewScanner(std::string file, Reviews& reviews) : file_(std::move(file)), reviews_(reviews) {}

  /// Adds the review of a line, which has no line break; blank lines have none. Throws DataError with the
  /// number of the line and the column in bytes.
  void read_line(std::string_view line, std::int64_t number);

 private:
  [[noreturn]] void fail(const char* at, const std::string& sentence) const;
  [[noreturn]] void fail_here(std::string_view expected) const;
  void skip_blanks();
  void expect(char wanted, std::string_view meaning);
  bool next_is(char wanted);
  std::string_view read_string(std::string_view meaning);
  std::string_view read_escaped(const char* begin);
  void append_escape(const char* backslash);
  unsigned read_hex(const char* backslash);
  void require_utf8(std::string_view text) const;
  double read_number(std::string_view meaning);
  void read_members();
  void read_rating();
  void read_opinions();
  void read_opinion();

  std::string file_;
  Reviews& reviews_;
  std::int64_t number_ = 0;
  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::string unescaped_;
  std::int32_t user_ = -1;
  std::int32_t item_ = -1;
  float rating_ = -1.0F;
  bool has_opinions_ = false;
  std::vector<Mention> mentions_;
};

}  // namespace olrank
