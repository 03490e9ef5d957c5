#include "sim/recorded_feedback.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "core/data/letor_reader.h"
#include "core/feedback/feedback_record.h"
#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/text_lines.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kLongestLine = std::size_t{256} << 20;
constexpr std::uint64_t kLeastInMemory = std::uint64_t{1} << 20;  // a file is worth so many bytes of rounds
constexpr std::string_view kRecordedRounds = "Rounds";

/// Resolves the names and indices of a file against the data.
class LineResolver {
 public:
  LineResolver(std::string file, const Dataset& train)
      : file_(std::move(file)), train_(train), names_(train) {
    queries_.reserve(train.queries());
    for (std::int64_t query = 0; query < train.queries(); ++query)
      queries_.emplace(train.qid(query), query);
  }

  std::int64_t query(const std::string& qid, std::int64_t number, std::int64_t column) {
    const auto known = queries_.find(qid);
    if (known == queries_.end())
      throw_data_error(file_, number, column, "The training data has no query {}.", olrank::quoted(qid));
    return known->second;
  }

  /// Appends the line's documents.
  void append_shown(const std::vector<DocId>& docs, const std::vector<std::int64_t>& columns,
                    std::int64_t query, std::int64_t number, std::vector<std::int32_t>& shown) {
    for (std::size_t rank = 0; rank < docs.size(); ++rank) {
      const std::int64_t column = columns[rank];
      const std::string& called = docs[rank].text;
      const std::int32_t doc = docs[rank].is_number ? by_index(called, query, number, column)
                                                    : by_name(called, query, number, column);
      const auto at = static_cast<std::size_t>(doc);
      if (at >= shown_in_.size()) shown_in_.resize(at + 1, 0);
      if (shown_in_[at] == number) {
        throw_data_error(file_, number, column, "Document {} of query {} is shown twice.", doc,
                         olrank::quoted(train_.qid(query)));
      }
      shown_in_[at] = number;
      shown.push_back(doc);
    }
  }

  const std::string& file() const { return file_; }

 private:
  std::int32_t by_index(const std::string& called, std::int64_t query, std::int64_t number,
                        std::int64_t column) const {
    const std::int64_t docs = train_.docs_of(query);
    std::int64_t index = 0;
    std::from_chars(called.data(), called.data() + called.size(), index);
    if (index < 0 || index >= docs) {
      throw_data_error(file_, number, column,
                       "Query {} has {} documents, so an index must be between 0 and {}, not {}.",
                       olrank::quoted(train_.qid(query)), docs, docs - 1, index);
    }
    return static_cast<std::int32_t>(index);
  }

  std::int32_t by_name(const std::string& called, std::int64_t query, std::int64_t number,
                       std::int64_t column) {
    const std::int32_t doc = names_.by_name(query, called);
    if (doc == DocFinder::kAmbiguous) {
      throw_data_error(file_, number, column,
                       "Query {} has several documents named {}. Use indices instead, from 0.",
                       olrank::quoted(train_.qid(query)), olrank::quoted(called));
    }
    if (doc == DocFinder::kUnknown) {
      throw_data_error(file_, number, column,
                       "Query {} has no document named {}. Use the index, a number from 0, for a document "
                       "without a name.",
                       olrank::quoted(train_.qid(query)), olrank::quoted(called));
    }
    return doc;
  }

  std::string file_;
  const Dataset& train_;
  std::unordered_map<std::string_view, std::int64_t> queries_;
  DocFinder names_;
  std::vector<std::int64_t> shown_in_;  // by doc, the last line that showed it
};

/// A service closes its log as segments, and the last one alone has the log's own name.
bool is_later_segment(std::string_view first_line) {
  constexpr std::string_view kRound = "{\"round\":";
  return first_line.starts_with(kRound) && !first_line.substr(kRound.size()).starts_with("1,") &&
         !check_of(first_line).empty();
}

}  // namespace

RecordedFeedback RecordedFeedback::read(const std::filesystem::path& path, const Dataset& train,
                                        std::optional<std::int64_t> max_bytes, const FeatureStore* store) {
  const auto limit = static_cast<std::uint64_t>(max_bytes.value_or(available_memory() / 2));
  const auto most = std::max(
      limit, static_cast<std::uint64_t>(
                 store != nullptr ? FeatureStore::most_bytes_of(text_bytes_of(path.string())) : 0.0));
  std::uint64_t moved = 0;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) throw IoError("read", path.string(), errno);
  // Lines of a trace with parameters and widths may be very long, so lines are processed as they arrive.
  const auto blocks =
      TextBlocks::of_stream(descriptor_stream(file.number(), path.string()), kBlockBytes, kLongestLine);
  LineResolver resolver(path.string(), train);
  RecordedFeedback recorded;
  FeedbackRecord line;
  ReplayColumns columns;
  std::int64_t number = 0;
  for (TextBlock block; blocks->next(block);) {
    for (std::string_view text = block.text; !text.empty();) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (++number == 1 && is_later_segment(text.substr(0, end)))
        throw DataError(
            resolver.file(), 1, 1,
            "Earlier rounds of this log are in other files beside it: make one file of them with "
            "'olrank log cut --log FOLDER --from-round 1 --out FILE', and replay that.");
      if (const auto failure = parse_replay_line(text.substr(0, end), line, columns)) {
        throw DataError(resolver.file(), number, failure->column, failure->message);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.docs.empty()) continue;
      const std::int64_t query = resolver.query(line.query, number, columns.query);
      resolver.append_shown(line.docs, columns.docs, query, number, recorded.shown_);
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
      if (moved + recorded.bytes() > most) {
        throw_data_error(resolver.file(), number, 1,
                         "The first {} rounds need {} of memory, but --max-memory allows {}. Raise "
                         "--max-memory, or replay fewer rounds.",
                         recorded.rounds(), readable_bytes(static_cast<double>(moved + recorded.bytes())),
                         readable_bytes(static_cast<double>(limit)));
      }
      if (store != nullptr && recorded.bytes() > std::max(limit, kLeastInMemory)) {
        if (moved == 0) {
          log_info(
              "The rounds of {} go beyond --max-memory {}, to files in '{}' that end with this "
              "process; results do not change.",
              path.string(), readable_bytes(static_cast<double>(limit)), store->folder().string());
        }
        moved += recorded.bytes();
        recorded.move_to_file(*store);
      }
    }
    if (block.failure) {
      throw DataError(resolver.file(), number + 1, static_cast<std::int64_t>(block.cut_off) + 1,
                      *block.failure);
    }
  }
  if (recorded.rounds() == 0) throw DataError(resolver.file(), 1, 1, "The file has no rounds to replay.");
  if (store != nullptr) recorded.add_missing_rewards(*store);
  return recorded;
}

void RecordedFeedback::move_to_file(const FeatureStore& store) {
  PieceInFile made;
  made.memory = store.take_in_file(bytes() - std::span(rewards_).size_bytes(), kRecordedRounds);
  std::byte* to = made.memory.data();
  const auto move = [&to](auto& values) {
    using Value = typename std::remove_reference_t<decltype(values)>::value_type;
    auto* const begin = reinterpret_cast<Value*>(to);
    std::ranges::copy(values, begin);
    const std::span<const Value> there(begin, values.size());
    to += there.size_bytes();
    values.clear();
    return there;
  };
  made.piece.first_round = rounds_in_files();
  made.piece.queries = move(queries_);
  made.piece.offsets = move(offsets_);
  made.piece.shown = move(shown_);
  made.piece.clicks = move(clicks_);
  if (!rewards_.empty()) {
    made.rewards = store.take_in_file(std::span(rewards_).size_bytes(), kRecordedRounds);
    to = made.rewards.data();
    made.piece.rewards = move(rewards_);
  }
  offsets_ = {0};
  in_files_.push_back(std::move(made));
}

/// All rounds have rewards once one has them.
void RecordedFeedback::add_missing_rewards(const FeatureStore& store) {
  const auto has_rewards = [](const PieceInFile& one) { return !one.piece.rewards.empty(); };
  if (rewards_.empty() && std::ranges::none_of(in_files_, has_rewards)) return;
  if (rewards_.empty()) rewards_.assign(clicks_.begin(), clicks_.end());
  for (PieceInFile& one : in_files_) {
    if (has_rewards(one)) continue;
    one.rewards = store.take_in_file(one.piece.clicks.size() * sizeof(double), kRecordedRounds);
    std::ranges::copy(one.piece.clicks, one.rewards.as<double>().begin());
    one.piece.rewards = one.rewards.as<double>();
  }
}

template <class Visit>
void RecordedFeedback::for_pieces(const Visit& visit) const {
  for (const PieceInFile& one : in_files_) visit(one.piece);
  visit(in_memory());
}

std::uint64_t RecordedFeedback::bytes() const {
  return std::span(queries_).size_bytes() + std::span(offsets_).size_bytes() +
         std::span(shown_).size_bytes() + std::span(clicks_).size_bytes() +
         std::span(rewards_).size_bytes();
}

RecordedFeedback::Record RecordedFeedback::at(std::int64_t index) const {
  const auto found = std::ranges::upper_bound(in_files_, index, {},
                                              [](const PieceInFile& one) { return one.piece.end_round(); });
  const Piece piece = found == in_files_.end() ? in_memory() : found->piece;
  const auto round = static_cast<std::size_t>(index - piece.first_round);
  const auto begin = static_cast<std::size_t>(piece.offsets[round]);
  const auto size = static_cast<std::size_t>(piece.offsets[round + 1]) - begin;
  return {piece.queries[round], piece.shown.subspan(begin, size), piece.clicks.subspan(begin, size),
          piece.rewards.empty() ? piece.rewards : piece.rewards.subspan(begin, size)};
}

Fingerprint RecordedFeedback::fingerprint() const {
  Fingerprinter content;
  for_pieces([&](const Piece& piece) { content.add(piece.queries); });
  std::int64_t docs = 0;  // of earlier pieces
  content.add(&docs, sizeof docs);
  for_pieces([&](const Piece& piece) {
    for (const std::int64_t end : piece.offsets.subspan(1)) {
      const std::int64_t offset = docs + end;
      content.add(&offset, sizeof offset);
    }
    docs += std::ssize(piece.shown);
  });
  for_pieces([&](const Piece& piece) { content.add(piece.shown); });
  for_pieces([&](const Piece& piece) { content.add(piece.clicks); });
  for_pieces([&](const Piece& piece) { content.add(piece.rewards); });
  return content.value();
}

}  // namespace olrank
