#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/byte_stream.h"
#include "core/io/mapped_memory.h"

namespace olrank {

/// A log's text as if it were one file: its closed segments, and the file that grows. A position is a byte
/// of that text from the beginning of the log on, which a segment's name has of its first one, so that it
/// stays true when segments are compressed, and when the first ones are dropped. Immutable but for the end
/// of the file that grows; thread-safe.
class LogText {
 public:
  /// Opens what is there; files that are renamed, compressed or removed later are read as they are now.
  /// Takes from `before` what has not changed. Throws IoError.
  explicit LogText(std::filesystem::path file, const LogText* before = nullptr);

  /// feedback-000000000000000.jsonl beside feedback.jsonl; with .zst behind once it is compressed.
  static std::filesystem::path segment_path(const std::filesystem::path& file, std::int64_t begin);
  /// Whether this is the name of a segment of a log with the name `file`.
  static bool is_segment(const std::filesystem::path& path, const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }
  bool exists() const;
  std::int64_t begin() const { return parts_.front()->begin; }
  /// Where the file that grows begins.
  std::int64_t grows_at() const { return parts_.back()->begin; }
  /// The end is read again.
  std::int64_t end() const;
  std::int64_t bytes_on_disk() const;

  struct Segment {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::filesystem::path path;
    bool compressed = false;
    bool whole = true;  // as far as the sizes of its frames tell
  };
  std::vector<Segment> segments() const;

  /// Whole lines from a position on, at least one; empty at the end. The last one of the log may lack its
  /// newline. Throws DataError for a damaged or missing segment.
  std::string lines_at(std::int64_t position, std::int64_t bytes = kBytesAtOnce) const;
  /// The line that ends at this position, without its newline; empty if none does.
  std::string line_before(std::int64_t position) const;
  /// Where the last whole line ends.
  std::int64_t end_of_lines() const;

  /// Writes a part of the text to a file, compressed. `pause` runs between its pieces, and may throw.
  void compress(std::int64_t begin, std::int64_t end, const std::filesystem::path& to,
                const std::function<void()>& pause = {}) const;
  /// Replaces a segment by its compressed form, which it reads again and compares before.
  void compress(const Segment& segment, const std::function<void()>& pause = {}) const;

  static constexpr std::int64_t kBytesAtOnce = 1 << 18;

 private:
  struct Frame {
    std::int64_t begin = 0;  // of its content
    std::string_view bytes;
  };
  struct Part {
    std::int64_t begin = 0;
    std::int64_t end = -1;  // of a segment, as its content tells
    std::filesystem::path path;
    MappedMemory mapped;  // of a compressed one
    std::vector<Frame> frames;
    bool whole = true;
    std::shared_ptr<Descriptor> plain;

    std::string content(const Frame& frame) const;
  };

  bool open(const LogText* before);
  static std::shared_ptr<const Part> open_part(const std::filesystem::path& path, std::int64_t begin,
                                               bool grows = false);
  std::size_t index_of(std::int64_t position) const;
  std::int64_t read(const Part& part, std::int64_t position, char* to, std::int64_t bytes) const;
  static const Frame* frame_at(const Part& part, std::int64_t position);

  std::filesystem::path file_;
  std::vector<std::shared_ptr<const Part>> parts_;  // the last one grows
};

/// The round that a line of a log begins with; 0 without one.
std::uint64_t round_of(std::string_view line);

/// The whole text of a log as a stream.
std::unique_ptr<ByteStream> log_stream(std::shared_ptr<const LogText> text);

}  // namespace olrank
