#include "core/io/text_lines.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/io/byte_stream.h"

namespace olrank {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

}  // namespace

TextLines TextLines::of_memory(std::string_view text, std::string file) {
  return {TextBlocks::of_memory(text, kBlockBytes), std::move(file)};
}

TextLines TextLines::of_file(const std::filesystem::path& path, std::size_t longest_line) {
  const std::string name = path.string();
  auto file = std::make_unique<Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file->is_open()) throw IoError("read", name, errno);
  TextLines lines(TextBlocks::of_stream(descriptor_stream(file->number(), name), kBlockBytes, longest_line),
                  name);
  lines.descriptor_ = std::move(file);
  return lines;
}

bool TextLines::next() {
  while (rest_.empty()) {
    if (!blocks_->next(block_)) return false;
    if (block_.failure)
      throw DataError(file_, number_ + 1, static_cast<std::int64_t>(block_.cut_off) + 1, *block_.failure);
    rest_ = block_.text;
  }
  const std::size_t end = rest_.find('\n');  // a block ends in one
  line_ = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  ++number_;
  return true;
}

bool TextLines::blank() const {
  return line_.find_first_not_of(kBlanks) == std::string_view::npos;
}

void TextLines::take_fields(std::span<std::string_view> words, std::string_view shape) const {
  std::string_view rest = line();
  std::size_t count = 0;
  std::string_view wrong = line().substr(line().size());  // the missing or surplus field
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (count < words.size()) words[count] = word;
    if (count == words.size()) wrong = word;
    ++count;
  }
  if (count != words.size())
    fail(wrong, fmt::format("A line of {}, but this line has {} fields.", shape, count));
}

void TextLines::fail(std::string_view part, const std::string& sentence) const {
  throw DataError(file_, number_, part.data() - line_.data() + 1, sentence);
}

std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::string quoted(std::string_view word) {
  constexpr std::size_t kShown = 40;
  std::string shown;
  for (const char c : word.substr(0, kShown)) shown += c >= ' ' && c != '\x7F' ? c : '?';
  return fmt::format("'{}{}'", shown, word.size() > kShown ? "..." : "");
}

}  // namespace olrank
