#include "core/data/letor_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

#include "core/text/message_text.h"

namespace olrank::detail {
namespace {

/// Whether a number outside float's range lies above it, by the place of its first digit that is not 0.
bool is_large(std::string_view text) {
  if (text.front() == '-') text.remove_prefix(1);
  const std::size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, exponent_at);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_not_of("0.");
  if (first == std::string_view::npos) return false;
  const std::int64_t place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  std::int64_t exponent = 0;
  if (exponent_at < text.size()) {
    std::string_view written = text.substr(exponent_at + 1);
    if (written.front() == '+') written.remove_prefix(1);
    const auto result = std::from_chars(written.data(), written.data() + written.size(), exponent);
    if (result.ec == std::errc::result_out_of_range) return written.front() != '-';
  }
  return exponent > -place;
}

}  // namespace

float parse_float_slowly(const char* begin, const char* end) {
  float value = 0.0F;
  const std::from_chars_result result = std::from_chars(begin, end, value);
  if (result.ec == std::errc::result_out_of_range) {
    value = is_large({begin, static_cast<std::size_t>(end - begin)})
                ? std::numeric_limits<float>::infinity()
                : 0.0F;
    return *begin == '-' ? -value : value;
  }
  return value;
}

}  // namespace olrank::detail

namespace olrank {
namespace {

using detail::digit_of;

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

/// The word at `p` as a message can show it.
std::string shown_word(const char* p, const char* end) {
  return excerpt({p, static_cast<std::size_t>(std::find_if(p, end, is_blank) - p)});
}

bool names_no_finite_number(std::string_view word) {
  if (!word.empty() && (word.front() == '-' || word.front() == '+')) word.remove_prefix(1);
  std::string lower;
  for (const char c : word.substr(0, 3))
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower == "nan" || lower == "inf";
}

class BlockParser {
 public:
  explicit BlockParser(std::string_view text) : text_(text) {
    // A feature takes four characters of text or more and at most three words, a document eight and one.
    block_.text_bytes = std::ssize(text);
    block_.runs = MappedMemory::anonymous((text.size() + 8) * sizeof(std::uint32_t));
    next_word_ = block_.runs.as<std::uint32_t>().data();
  }

  LetorBlock parse() {
    const char* p = text_.data();
    const char* const end = p + text_.size();
    const std::uint32_t* const first_word = next_word_;
    while (p < end) {
      const char* feed = static_cast<const char*>(std::memchr(p, '\n', end - p));
      assert(feed != nullptr);
      ++block_.lines;
      line_ = p;
      line_end_ = feed;
      while (line_end_ > line_ && line_end_[-1] == '\r') --line_end_;
      if (!parse_line()) break;
      p = feed + 1;
    }
    block_.runs.shrink(static_cast<std::size_t>(next_word_ - first_word) * sizeof(std::uint32_t));
    block_.grades.shrink_to_fit();
    names_.query_runs.shrink_to_fit();
    names_.qid_text.shrink_to_fit();
    names_.qid_ends.shrink_to_fit();
    names_.doc_text.shrink_to_fit();
    names_.doc_ends.shrink_to_fit();
    return std::move(block_);
  }

 private:
  TextPlace place(const char* p) const { return {block_.lines, p - line_ + 1}; }

  /// Returns nullptr, as the parsers do that fail.
  const char* fail(const char* p, std::string sentence) {
    block_.failure = LetorBlock::Failure{place(p), std::move(sentence)};
    return nullptr;
  }

  template <class... Args>
  requires(sizeof...(Args) > 0) const
      char* fail(const char* p, fmt::format_string<Args...> sentence, Args&&... args) {
    return fail(p, fmt::format(sentence, std::forward<Args>(args)...));
  }

  // From here on every reader may look at *line_end_, which is a line feed or carriage return and so ends
  // any number, word or stretch of blanks.
  bool parse_line() {
    const char* p = skip_blanks(line_);
    if (p == line_end_ || *p == '#') return true;
    int grade = 0;
    if ((p = parse_grade(p, grade)) == nullptr) return false;
    if ((p = parse_qid(p)) == nullptr) return false;
    if ((p = parse_features(p)) == nullptr) return false;
    if (parse_comment(p) == nullptr) return false;
    if (qid_ != latest_qid_ || block_.grades.empty()) {
      latest_query_ = queries_.number_of(qid_);
      latest_qid_ = qid_;
      if (latest_query_ == names_.qid_ends.size()) {
        names_.qid_text += qid_;
        names_.qid_ends.push_back(names_.qid_text.size());
      }
    }
    append_run(names_.query_runs, {latest_query_, 1});
    block_.grades.push_back(static_cast<std::uint8_t>(grade));
    return true;
  }

  const char* parse_grade(const char* p, int& grade) {
    const char* const word = p;
    const auto refuse = [&](const char* at, std::string_view why) {
      return fail(at, "The grade '{}' {}; a grade must be an integer from 0 to {}.",
                  shown_word(word, line_end_), why, kLargestGrade);
    };
    if (*p == '+') ++p;
    if (*p == '-' && digit_of(p[1]) <= 9) return refuse(word, "is negative");
    const char* const digits = p;
    for (unsigned digit = 0; (digit = digit_of(*p)) <= 9; ++p) {
      grade = std::min(grade * 10 + static_cast<int>(digit), kLargestGrade + 1);
    }
    if (p == digits) {
      const std::string_view rest(word, line_end_ - word);
      return refuse(word, names_no_finite_number(rest) ? "is not finite" : "is not a number");
    }
    if (*p == '.') {
      ++p;
      while (*p == '0') ++p;
      if (digit_of(*p) <= 9) return refuse(word, "is not an integer");
    }
    if (!is_blank(*p) && p != line_end_ && *p != '#') return refuse(word, "is not an integer");
    if (grade > kLargestGrade) return refuse(word, "is too large");
    return p;
  }

  const char* parse_qid(const char* p) {
    p = skip_blanks(p);
    if (std::string_view(p, line_end_ - p).substr(0, 4) != "qid:") {
      if (p == line_end_ || *p == '#')
        return fail(p, "The line ends after the grade; 'qid:' and a query ID must follow.");
      return fail(p, "'qid:' and a query ID must follow the grade, not '{}'.", shown_word(p, line_end_));
    }
    p += 4;
    const char* const begin = p;
    while (p < line_end_ && !is_blank(*p) && *p != '#') {
      if (static_cast<unsigned char>(*p) < 0x20 || *p == 0x7F)
        return fail(p, "The query ID '{}' contains a control character.", shown_word(begin, line_end_));
      ++p;
    }
    qid_ = {begin, static_cast<std::size_t>(p - begin)};
    if (qid_.size() > std::numeric_limits<std::uint32_t>::max())
      return fail(begin, "The query ID is longer than 4 GB.");
    return qid_.empty() ? fail(p, "The query ID after 'qid:' is missing.") : p;
  }

  /// The number and the colon at `p`, which is a digit or wrong; the index counts from 0.
  [[gnu::always_inline]] const char* parse_index(const char* p, std::uint32_t& index) {
    const char* const word = p;
    std::uint64_t number = 0;
    for (unsigned digit = 0; (digit = digit_of(*p)) <= 9; ++p) {
      number = number * 10 + digit;
      if (number > static_cast<std::uint64_t>(kLargestFeature)) [[unlikely]] {
        number = static_cast<std::uint64_t>(kLargestFeature) + 1;  // and further digits keep it there
      }
    }
    if (p != word && *p == ':' && number - 1 < static_cast<std::uint64_t>(kLargestFeature)) [[likely]] {
      index = static_cast<std::uint32_t>(number - 1);
      return p + 1;
    }
    return refuse_index(word, p);
  }

  /// `p` is behind the digits that `word` begins with.
  [[gnu::noinline]] const char* refuse_index(const char* word, const char* p) {
    const std::string shown = shown_word(word, line_end_);
    const bool negative = *word == '-' && digit_of(word[1]) <= 9;
    if (negative || (p != word && *p == ':'))
      return fail(word, "The feature number of '{}' must be between 1 and {}.", shown, kLargestFeature);
    if (p == word) return fail(word, "Expected a feature as number:value, not '{}'.", shown);
    return fail(p, "The feature number in '{}' must be followed by a colon and a value.", shown);
  }

  [[gnu::always_inline]] const char* parse_value(const char* p, float& value) {
    const char* rest = parse_float(p, value);
    if (rest != nullptr && (is_blank(*rest) || rest == line_end_ || *rest == '#') && std::isfinite(value))
        [[likely]] {
      return rest;
    }
    return parse_odd_value(p, value);
  }

  /// A value with a plus, NULL, or wrong.
  [[gnu::noinline]] const char* parse_odd_value(const char* p, float& value) {
    const char* const word = p;
    if (*p == '+' && (digit_of(p[1]) <= 9 || p[1] == '.')) return parse_value(p + 1, value);
    const std::string_view line_rest(word, line_end_ - word);
    if (line_rest.substr(0, 4) == "NULL" &&
        (is_blank(word[4]) || word + 4 == line_end_ || word[4] == '#')) {
      if (block_.null_values++ == 0) block_.first_null = place(word);
      value = 0.0F;
      return word + 4;
    }
    const std::string shown = shown_word(word, line_end_);
    const char* rest = parse_float(p, value);
    if (names_no_finite_number(line_rest)) return fail(word, "The value '{}' is not finite.", shown);
    if (rest != nullptr && !std::isfinite(value))
      return fail(word, "The value '{}' is too large for a 32-bit float.", shown);
    if (word == line_end_ || is_blank(*word) || *word == '#')
      return fail(word, "The value after the colon is missing.");
    return fail(word, "The value '{}' is not a number.", shown);
  }

  /// Appends the document's runs and returns where its comment or the line's end is.
  const char* parse_features(const char* p) {
    const char* const features = p;
    const std::int64_t nulls = block_.null_values;
    begin_doc();
    const char* last = p;
    for (;;) {
      p = skip_blanks(p);
      if (p == line_end_ || *p == '#') break;
      last = p;
      std::uint32_t index = 0;
      float value = 0.0F;
      if ((p = parse_index(p, index)) == nullptr) return nullptr;
      if ((p = parse_value(p, value)) == nullptr) return nullptr;
      if (index < next_index_) [[unlikely]] {
        block_.null_values = nulls;
        next_word_ = run_count_;  // as before the document
        return parse_unsorted_features(features);
      }
      append(index, value);
    }
    end_doc(last);
    return p;
  }

  const char* parse_unsorted_features(const char* p) {
    struct Entry {
      std::uint32_t index;
      float value;
      const char* word;
    };
    std::vector<Entry> entries;
    for (;;) {
      p = skip_blanks(p);
      if (p == line_end_ || *p == '#') break;
      Entry entry{0, 0.0F, p};
      if ((p = parse_index(p, entry.index)) == nullptr) return nullptr;
      if ((p = parse_value(p, entry.value)) == nullptr) return nullptr;
      entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.index != b.index ? a.index < b.index : a.word < b.word;
    });
    const Entry* twice = nullptr;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].index != entries[i - 1].index) continue;
      if (twice == nullptr || entries[i].word < twice->word) twice = &entries[i];
    }
    if (twice != nullptr)
      return fail(twice->word, "Feature {} appears twice in this line.", std::int64_t{twice->index} + 1);
    begin_doc();
    for (const Entry& entry : entries) append(entry.index, entry.value);
    end_doc(entries.back().word);
    return p;
  }

  void begin_doc() {
    run_count_ = next_word_++;
    *run_count_ = 0;
    run_length_ = nullptr;
    next_index_ = 0;
    nonzeros_of_doc_ = 0;
  }

  [[gnu::always_inline]] void append(std::uint32_t index, float value) {
    const std::uint64_t gap = index - next_index_;
    if (run_length_ == nullptr || gap > 1) {
      close_run();
      ++*run_count_;
      *next_word_++ = index;
      run_length_ = next_word_++;
    } else if (gap == 1) {
      *next_word_++ = 0;  // +0.0
    }
    *next_word_++ = std::bit_cast<std::uint32_t>(value);
    nonzeros_of_doc_ += value != 0.0F ? 1 : 0;
    next_index_ = std::uint64_t{index} + 1;
  }

  void close_run() {
    if (run_length_ != nullptr) *run_length_ = static_cast<std::uint32_t>(next_word_ - run_length_ - 1);
  }

  void end_doc(const char* last) {
    close_run();
    make_dense();
    block_.nonzeros += nonzeros_of_doc_;
    if (static_cast<std::int64_t>(next_index_) > block_.largest_feature) {
      block_.largest_feature = static_cast<std::int64_t>(next_index_);
      block_.largest_feature_place = place(last);
    }
  }

  /// Takes the words of index and length out of a document that is one run from the first feature.
  void make_dense() {
    if (*run_count_ != 1 || run_count_[1] != 0 || run_count_[2] >= LetorBlock::kDense) return;
    const std::uint32_t length = run_count_[2];
    std::memmove(run_count_ + 1, run_count_ + 3, length * sizeof(std::uint32_t));
    *run_count_ = LetorBlock::kDense + length;
    next_word_ -= 2;
  }

  /// Looks for `docid = NAME`.
  const char* parse_comment(const char* p) {
    std::string_view name;
    const std::string_view comment(p, line_end_ - p);
    for (std::size_t at = comment.find("docid"); at != std::string_view::npos;
         at = comment.find("docid", at + 1)) {
      const char before = comment[at - 1];  // at ≥ 1: the comment begins with '#'
      if (!is_blank(before) && before != '#') continue;
      const char* q = skip_blanks(comment.data() + at + 5);
      if (*q != '=') continue;
      q = skip_blanks(q + 1);
      const char* const begin = q;
      while (q < line_end_ && !is_blank(*q)) {
        if (static_cast<unsigned char>(*q) < 0x20 || *q == 0x7F)
          return fail(q, "The document name '{}' contains a control character.",
                      shown_word(begin, line_end_));
        ++q;
      }
      name = {begin, static_cast<std::size_t>(q - begin)};
      break;
    }
    if (name.size() > std::numeric_limits<std::uint32_t>::max())
      return fail(name.data(), "The document name is longer than 4 GB.");
    if (!name.empty() && names_.doc_ends.empty()) names_.doc_ends.resize(block_.grades.size(), 0);
    if (!name.empty() || !names_.doc_ends.empty()) {
      names_.doc_text += name;
      names_.doc_ends.push_back(names_.doc_text.size());
    }
    return line_end_;
  }

  std::string_view text_;
  LetorBlock block_;
  LetorBlock::Names& names_ = block_.names;
  const char* line_ = nullptr;
  const char* line_end_ = nullptr;
  std::string_view qid_;
  std::string_view latest_qid_;  // of the document before
  std::uint32_t latest_query_ = 0;
  QueryNumbers queries_;
  std::uint32_t* next_word_ = nullptr;
  std::uint32_t* run_count_ = nullptr;
  std::uint32_t* run_length_ = nullptr;  // of the run being filled
  std::uint64_t next_index_ = 0;
  std::int64_t nonzeros_of_doc_ = 0;
};

}  // namespace

std::int64_t LetorBlock::Names::bytes() const {
  return static_cast<std::int64_t>(query_runs.size() * sizeof(QueryRun) + qid_text.size() +
                                   doc_text.size() +
                                   (qid_ends.size() + doc_ends.size()) * sizeof(std::uint64_t));
}

void LetorBlock::append_doc_names(std::size_t docs_before, std::string& text,
                                  std::vector<std::uint64_t>& ends) const {
  if (names.doc_ends.empty() && ends.empty()) return;
  ends.resize(docs_before, text.size());
  for (const std::uint64_t end : names.doc_ends) ends.push_back(text.size() + end);
  text += names.doc_text;
  ends.resize(docs_before + grades.size(), text.size());
}

LetorBlock parse_letor_block(std::string_view text) {
  assert(text.empty() || text.back() == '\n');
  return BlockParser(text).parse();
}

}  // namespace olrank
