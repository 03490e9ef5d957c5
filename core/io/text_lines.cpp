#include "core/io/text_lines.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/text/message_text.h"

namespace olrank {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

class MemoryBlocks : public TextBlocks {
 public:
  MemoryBlocks(std::string_view text, std::size_t block_bytes) : left_(text), block_bytes_(block_bytes) {}

  bool next(TextBlock& block) override {
    if (left_.empty()) return false;
    block.number = number_++;
    std::size_t end = left_.size() <= block_bytes_ ? left_.rfind('\n') : left_.find('\n', block_bytes_ - 1);
    if (end == std::string_view::npos && left_.size() > block_bytes_) end = left_.rfind('\n');
    if (end != std::string_view::npos) {
      block.text = left_.substr(0, end + 1);
      left_.remove_prefix(end + 1);
      return true;
    }
    block.buffer.assign(left_.begin(), left_.end());
    block.buffer.push_back('\n');
    block.text = {block.buffer.data(), block.buffer.size()};
    left_ = {};
    return true;
  }

 private:
  std::string_view left_;
  std::size_t block_bytes_;
  std::int64_t number_ = 0;
};

/// The place behind the last line feed at or after `from`; 0 when there is none.
std::size_t end_of_lines(const std::vector<char>& text, std::size_t from) {
  const void* feed = text.size() > from ? ::memrchr(text.data() + from, '\n', text.size() - from) : nullptr;
  return feed == nullptr ? 0 : static_cast<std::size_t>(static_cast<const char*>(feed) - text.data()) + 1;
}

class StreamBlocks : public TextBlocks {
 public:
  StreamBlocks(std::unique_ptr<ByteStream> stream, std::size_t block_bytes, std::size_t longest_line,
               std::string_view set_by)
      : stream_(std::move(stream)),
        block_bytes_(block_bytes),
        longest_line_(longest_line),
        set_by_(set_by) {}

  bool next(TextBlock& block) override {
    std::vector<char>& buffer = block.buffer;
    buffer.swap(rest_);
    rest_.clear();
    for (;;) {
      if (failure_ || ended_) break;
      // The bytes that are there already hold no line's end, so only new ones are looked at.
      const std::size_t before = buffer.size();
      fill(buffer);
      if (failure_ || ended_) break;
      if (give_lines(block, end_of_lines(buffer, before))) return true;
      if (buffer.size() > longest_line_) {
        failure_ = fmt::format("The line is longer than {}{}.",
                               readable_bytes(static_cast<double>(longest_line_)), set_by_);
        break;
      }
    }
    if (failure_) {
      // Whole lines first: a mistake in them comes before this one.
      if (give_lines(block, end_of_lines(buffer, 0))) return true;
      if (told_) return false;
      told_ = true;
      block.cut_off = buffer.size();
      block.failure = failure_;
      return give(block, 0);
    }
    if (buffer.empty()) return false;
    if (buffer.back() != '\n') buffer.push_back('\n');
    return give(block, buffer.size());
  }

 private:
  void fill(std::vector<char>& buffer) {
    std::size_t filled = buffer.size();
    // A line longer than a block takes as much again each time, so that its bytes move few times.
    const std::size_t more = std::max(block_bytes_, filled);
    const std::size_t room = longest_line_ >= filled ? longest_line_ - filled + 1 : more;
    buffer.resize(filled + std::min(more, std::max(block_bytes_, room)));
    try {
      while (filled < buffer.size()) {
        const std::size_t count = stream_->read(std::span(buffer).subspan(filled));
        if (count == 0) {
          ended_ = true;
          break;
        }
        filled += count;
      }
    } catch (const BrokenStream& broken) {
      failure_ = broken.what();
    }
    buffer.resize(filled);
  }

  /// Keeps what is behind the lines; false without any.
  bool give_lines(TextBlock& block, std::size_t end) {
    if (end == 0) return false;
    rest_.assign(block.buffer.begin() + static_cast<std::ptrdiff_t>(end), block.buffer.end());
    return give(block, end);
  }

  bool give(TextBlock& block, std::size_t size) {
    block.number = number_++;
    block.text = {block.buffer.data(), size};
    return true;
  }

  std::unique_ptr<ByteStream> stream_;
  std::size_t block_bytes_;
  std::size_t longest_line_;
  std::string set_by_;
  std::vector<char> rest_;
  std::optional<std::string> failure_;
  std::int64_t number_ = 0;
  bool ended_ = false;
  bool told_ = false;
};

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

TextLines TextLines::of_stream(std::unique_ptr<ByteStream> stream, std::string file,
                               std::size_t longest_line) {
  return {TextBlocks::of_stream(std::move(stream), kBlockBytes, longest_line), std::move(file)};
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
  if (count != words.size()) fail(wrong, "A line of {}, but this line has {} fields.", shape, count);
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

std::unique_ptr<TextBlocks> TextBlocks::of_memory(std::string_view text, std::size_t block_bytes) {
  return std::make_unique<MemoryBlocks>(text, block_bytes);
}

std::unique_ptr<TextBlocks> TextBlocks::of_stream(std::unique_ptr<ByteStream> stream,
                                                  std::size_t block_bytes, std::size_t longest_line,
                                                  std::string_view set_by) {
  return std::make_unique<StreamBlocks>(std::move(stream), block_bytes, longest_line, set_by);
}

}  // namespace olrank
