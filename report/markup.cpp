#include "report/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "core/text/message_text.h"
#include "core/text/text_table.h"

namespace olrank {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const bool control = length == 1 && static_cast<unsigned char>(text[0]) < 0x20;
    found.push_back(length == 0 || control ? kReplacement : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return found;
}

double character_width(std::string_view character) {
  if (character.size() > 1) return character == "…" || character == "·" || character == "±" ? 0.8 : 1.05;
  const char c = character[0];
  if (std::string_view("ijl.,:;'|!").find(c) != std::string_view::npos) return 0.33;
  if (std::string_view("ftrI()[]{}-/\\ ").find(c) != std::string_view::npos) return 0.41;
  if (std::string_view("mMwW@%").find(c) != std::string_view::npos) return 1.0;
  if (std::string_view("+=<>~#").find(c) != std::string_view::npos) return 0.84;
  if (c >= 'A' && c <= 'Z') return 0.72;
  return 0.635;
}

using Replacement = std::pair<std::string_view, std::string_view>;

constexpr Replacement kHtmlCharacters[] = {
    {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}};
/// pdflatex and its relatives typeset these alike.
constexpr Replacement kLatexCharacters[] = {{"&", "\\&"},
                                            {"%", "\\%"},
                                            {"$", "\\$"},
                                            {"#", "\\#"},
                                            {"_", "\\_"},
                                            {"{", "\\{"},
                                            {"}", "\\}"},
                                            {"\\", "\\textbackslash{}"},
                                            {"~", "\\textasciitilde{}"},
                                            {"^", "\\textasciicircum{}"},
                                            {"<", "\\textless{}"},
                                            {">", "\\textgreater{}"},
                                            {"|", "\\textbar{}"},
                                            {"\"", "\\symbol{34}"},
                                            {"α", "$\\alpha$"},
                                            {"β", "$\\beta$"},
                                            {"γ", "$\\gamma$"},
                                            {"δ", "$\\delta$"},
                                            {"ε", "$\\epsilon$"},
                                            {"η", "$\\eta$"},
                                            {"θ", "$\\theta$"},
                                            {"λ", "$\\lambda$"},
                                            {"μ", "$\\mu$"},
                                            {"ν", "$\\nu$"},
                                            {"π", "$\\pi$"},
                                            {"σ", "$\\sigma$"},
                                            {"τ", "$\\tau$"},
                                            {"φ", "$\\phi$"},
                                            {"ω", "$\\omega$"},
                                            {"²", "$^2$"},
                                            {"³", "$^3$"},
                                            {"±", "$\\pm$"},
                                            {"×", "$\\times$"},
                                            {"·", "$\\cdot$"},
                                            {"−", "$-$"},
                                            {"≤", "$\\leq$"},
                                            {"≥", "$\\geq$"},
                                            {"–", "--"},
                                            {"—", "---"},
                                            {"…", "\\ldots{}"}};

/// Letters with accents that every text font of LaTeX has: U+00C0 to U+00FF without Ð, Þ, ð and þ.
bool is_accented_letter(std::string_view character) {
  if (character.size() != 2 || character[0] != '\xC3') return false;
  const auto low = static_cast<unsigned char>(character[1]);
  return low != 0x90 && low != 0x97 && low != 0x9E && low != 0xB0 && low != 0xB7 && low != 0xBE;
}

/// Empty for a character that stays.
std::string_view replacement_of(std::string_view character, std::span<const Replacement> replacements) {
  for (const auto& [from, to] : replacements) {
    if (character == from) return to;
  }
  return {};
}

std::string_view latex_character(std::string_view character) {
  const std::string_view known = replacement_of(character, kLatexCharacters);
  if (!known.empty()) return known;
  return character.size() == 1 || is_accented_letter(character) ? character : "?";
}

constexpr const char* kMinus = "−";  // U+2212

/// Commas between thousands in front of the point.
std::string separated(std::string digits) {
  const bool negative = digits.front() == '-';
  std::size_t place = std::min(digits.find('.'), digits.size());
  while (place > (negative ? 4U : 3U)) {
    place -= 3;
    digits.insert(place, 1, ',');
  }
  return with_minus(std::move(digits));
}

}  // namespace

std::string clean_utf8(std::string_view text) {
  std::string clean;
  for (const std::string_view character : characters(text)) clean += character;
  return clean;
}

std::string csv_text(std::string_view text) {
  return csv_field(clean_utf8(text));
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const std::string_view character : characters(text)) {
    const std::string_view known = replacement_of(character, kHtmlCharacters);
    escaped += known.empty() ? character : known;
  }
  return escaped;
}

std::string escape_latex(std::string_view text) {
  std::string escaped;
  std::string_view before;
  for (const std::string_view character : characters(text)) {
    // Two hyphens would join into a dash, two quotes into one.
    if (character == before && (character == "-" || character == "'" || character == "`")) escaped += "{}";
    escaped += latex_character(character);
    before = character;
  }
  return escaped;
}

std::string name_slug(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const bool kept =
        std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80;
    if (kept) {
      word += c;
    } else if (!word.empty() && word.back() != '-') {
      word += '-';
    }
  }
  while (!word.empty() && word.back() == '-') word.pop_back();
  return word.empty() ? "x" : word.substr(0, 60);
}

double text_width(std::string_view text, double font_size) {
  double width = 0.0;
  for (const std::string_view character : characters(text)) width += character_width(character);
  return width * font_size;
}

std::string shortened(std::string_view text, double font_size, double width) {
  if (text_width(text, font_size) <= width) return clean_utf8(text);
  const std::vector<std::string_view> all = characters(text);
  double left = width - text_width("…", font_size);
  std::string head;
  std::string tail;
  std::size_t begin = 0;
  std::size_t end = all.size();
  // Alternates between both ends, because names often differ at their ends.
  for (bool front = true; begin < end; front = !front) {
    const std::string_view next = front ? all[begin] : all[end - 1];
    left -= character_width(next) * font_size;
    if (left < 0.0) break;
    if (front) {
      head += next;
      ++begin;
    } else {
      tail.insert(0, next);
      --end;
    }
  }
  return head + "…" + tail;
}

std::string with_minus(std::string number) {
  if (!number.empty() && number.front() == '-') number.replace(0, 1, kMinus);
  return number;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "none";
  const double size = std::abs(value);
  if (size >= 1e3 && size < 1e15) return separated(fmt::format("{}", std::llround(value)));
  return with_minus(fmt::format("{:.4g}", value));
}

std::string fixed_number(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  std::string text = fmt::format("{:.{}f}", value, digits);
  // A value that rounds to 0 has no sign.
  if (text.find_first_of("123456789") == std::string::npos && text.front() == '-') text.erase(0, 1);
  return separated(std::move(text));
}

std::string estimate_text(const MeanInterval& estimate, int digits, bool with_sign) {
  std::string text = (with_sign && estimate.mean > 0.0 ? "+" : "") + fixed_number(estimate.mean, digits);
  if (std::isfinite(estimate.half_width)) text += " ± " + fixed_number(estimate.half_width, digits);
  return text;
}

std::string plain_estimate(const MeanInterval& estimate, int digits, bool with_sign,
                           std::string_view between) {
  std::string text = with_sign ? fmt::format("{:+.{}f}", estimate.mean, digits)
                               : fmt::format("{:.{}f}", estimate.mean, digits);
  if (std::isfinite(estimate.half_width))
    text += fmt::format("{}{:.{}f}", between, estimate.half_width, digits);
  return text;
}

std::string meaning_of_intervals(const std::string& units) {
  return fmt::format("± is half the width of the 95 % t interval of the mean over {}", units);
}

std::string runs_text(const std::vector<std::int64_t>& numbers, std::string_view between) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t last = begin;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[begin]);
    if (last > begin) text += fmt::format("{}{}", between, numbers[last]);
    begin = last + 1;
  }
  return text;
}

}  // namespace olrank
