#include "sim/recorded_feedback.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/data/doc_finder.h"
#include "core/data/text_blocks.h"
#include "core/error.h"
#include "core/io/byte_stream.h"
#include "core/io/descriptor.h"
#include "core/runtime/execution_context.h"
#include "core/text/byte_size.h"
#include "sim/feedback_line.h"

namespace olrank {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kLongestLine = std::size_t{256} << 20;

/// A short, printable excerpt of the file.
std::string excerpt(std::string_view word) {
  constexpr std::size_t kShown = 40;
  std::string shown;
  for (const char c : word.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte >= 0x20 && byte < 0x7F ? c : '?';
  }
  return fmt::format("'{}{}'", shown, word.size() > kShown ? "..." : "");
}

/// Resolves the names and indices of a file against the data.
class LineResolver {
 public:
  LineResolver(std::string file, const Dataset& train)
      : file_(std::move(file)), train_(train), names_(train) {
    queries_.reserve(train.queries());
    for (std::int64_t query = 0; query < train.queries(); ++query)
      queries_.emplace(train.qid(query), query);
  }

  std::int64_t query(const FeedbackLine& line, std::int64_t number) {
    const auto known = queries_.find(line.qid);
    if (known == queries_.end()) {
      fail(number, line.qid_column, fmt::format("The training data has no query {}.", excerpt(line.qid)));
    }
    if (line.shown.empty()) fail(number, line.shown_column, "'shown' must not be empty.");
    if (line.clicks.size() != line.shown.size()) {
      fail(number, line.clicks_column,
           fmt::format("The line has {} shown documents but {} clicks; each document needs one.",
                       line.shown.size(), line.clicks.size()));
    }
    if (!line.rewards.empty() && line.rewards.size() != line.shown.size()) {
      fail(number, line.rewards_column,
           fmt::format("The line has {} shown documents but {} rewards; each document needs one.",
                       line.shown.size(), line.rewards.size()));
    }
    return known->second;
  }

  /// Appends the line's documents.
  void append_shown(const FeedbackLine& line, std::int64_t query, std::int64_t number,
                    std::vector<std::int32_t>& shown) {
    for (const ShownDoc& called : line.shown) {
      const std::int32_t doc =
          called.index ? by_index(called, query, number) : by_name(called, query, number);
      const auto at = static_cast<std::size_t>(doc);
      if (at >= shown_in_.size()) shown_in_.resize(at + 1, 0);
      if (shown_in_[at] == number) {
        fail(number, called.column,
             fmt::format("Document {} of query {} is shown twice.", doc, excerpt(train_.qid(query))));
      }
      shown_in_[at] = number;
      shown.push_back(doc);
    }
  }

  [[noreturn]] void fail(std::int64_t line, std::int64_t column, const std::string& sentence) const {
    throw DataError(file_, line, column, sentence);
  }

 private:
  std::int32_t by_index(const ShownDoc& called, std::int64_t query, std::int64_t number) const {
    const std::int64_t docs = train_.docs_of(query);
    if (*called.index < 0 || *called.index >= docs) {
      fail(number, called.column,
           fmt::format("Query {} has {} documents, so an index must be between 0 and {}, not {}.",
                       excerpt(train_.qid(query)), docs, docs - 1, *called.index));
    }
    return static_cast<std::int32_t>(*called.index);
  }

  std::int32_t by_name(const ShownDoc& called, std::int64_t query, std::int64_t number) {
    const std::int32_t doc = names_.by_name(query, called.name);
    if (doc == DocFinder::kAmbiguous) {
      fail(number, called.column,
           fmt::format("Query {} has several documents named {}. Use indices instead, from 0.",
                       excerpt(train_.qid(query)), excerpt(called.name)));
    }
    if (doc == DocFinder::kUnknown) {
      fail(number, called.column,
           fmt::format("Query {} has no document named {}. Use the index, a number from 0, for a document "
                       "without a name.",
                       excerpt(train_.qid(query)), excerpt(called.name)));
    }
    return doc;
  }

  std::string file_;
  const Dataset& train_;
  std::unordered_map<std::string_view, std::int64_t> queries_;
  DocFinder names_;
  std::vector<std::int64_t> shown_in_;  // by doc, the last line that showed it
};

}  // namespace

RecordedFeedback RecordedFeedback::read(const std::filesystem::path& path, const Dataset& train,
                                        std::optional<std::int64_t> max_bytes) {
  const auto limit = static_cast<std::uint64_t>(max_bytes.value_or(available_memory() / 2));
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw IoError("read", path.string(), errno);
  // Lines of a trace with parameters and widths may be very long, so lines are processed as they arrive.
  const auto blocks =
      TextBlocks::of_stream(descriptor_stream(file.number(), path.string()), kBlockBytes, kLongestLine);
  LineResolver resolver(path.string(), train);
  RecordedFeedback recorded;
  FeedbackLine line;
  std::int64_t number = 0;
  for (TextBlock block; blocks->next(block);) {
    for (std::string_view text = block.text; !text.empty();) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++number;
      if (const auto failure = parse_feedback_line(text.substr(0, end), line)) {
        resolver.fail(number, failure->column, failure->sentence);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.blank) continue;
      const std::int64_t query = resolver.query(line, number);
      resolver.append_shown(line, query, number, recorded.shown_);
      recorded.queries_.push_back(query);
      // Without rewards a click is worth 1.
      if (!line.rewards.empty() && recorded.rewards_.empty())
        recorded.rewards_.assign(recorded.clicks_.begin(), recorded.clicks_.end());
      recorded.clicks_.insert(recorded.clicks_.end(), line.clicks.begin(), line.clicks.end());
      if (!line.rewards.empty()) {
        recorded.rewards_.insert(recorded.rewards_.end(), line.rewards.begin(), line.rewards.end());
      } else if (!recorded.rewards_.empty()) {
        recorded.rewards_.insert(recorded.rewards_.end(), line.clicks.begin(), line.clicks.end());
      }
      recorded.offsets_.push_back(std::ssize(recorded.shown_));
      if (recorded.bytes() > limit) {
        resolver.fail(
            number, 1,
            fmt::format("The first {} rounds need {} of memory, but --max-memory allows {}. Raise "
                        "--max-memory, or replay fewer rounds.",
                        recorded.rounds(), readable_bytes(static_cast<double>(recorded.bytes())),
                        readable_bytes(static_cast<double>(limit))));
      }
    }
    if (block.failure) {
      resolver.fail(number + 1, static_cast<std::int64_t>(block.cut_off) + 1, *block.failure);
    }
  }
  if (recorded.queries_.empty()) resolver.fail(1, 1, "The file has no rounds to replay.");
  return recorded;
}

std::uint64_t RecordedFeedback::bytes() const {
  return std::span(queries_).size_bytes() + std::span(offsets_).size_bytes() +
         std::span(shown_).size_bytes() + std::span(clicks_).size_bytes() +
         std::span(rewards_).size_bytes();
}

RecordedFeedback::Record RecordedFeedback::at(std::int64_t index) const {
  const auto round = static_cast<std::size_t>(index);
  const auto begin = static_cast<std::size_t>(offsets_[round]);
  const auto size = static_cast<std::size_t>(offsets_[round + 1]) - begin;
  const std::span<const double> rewards(rewards_);
  return {queries_[round], std::span(shown_).subspan(begin, size), std::span(clicks_).subspan(begin, size),
          rewards.empty() ? rewards : rewards.subspan(begin, size)};
}

Fingerprint RecordedFeedback::fingerprint() const {
  Fingerprinter content;
  content.add(std::span(queries_));
  content.add(std::span(offsets_));
  content.add(std::span(shown_));
  content.add(std::span(clicks_));
  if (!rewards_.empty()) content.add(std::span(rewards_));
  return content.value();
}

}  // namespace olrank
