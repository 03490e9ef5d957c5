#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/feedback/feedback_record.h"
#include "core/io/text_lines.h"

namespace olrank {

/// The records of a log, one after the other: feedback.jsonl of a service or its state folder, a trace of a
/// trial, or recorded feedback; plain, gzip or zstd. A service may write the log meanwhile. Nothing is
/// locked or changed.
class LogReader {
 public:
  /// Throws IoError for a file that cannot be read.
  explicit LogReader(const std::filesystem::path& log);

  /// A record without a round gets its place in the log. False at the end, and at a last line that is not
  /// complete yet. Throws DataError for a line that is no record.
  bool next(FeedbackRecord& record);
  /// The line is the record's; valid until next().
  std::string_view line() const { return lines_.line(); }
  std::int64_t number() const { return lines_.number(); }
  const std::string& file() const { return lines_.file(); }

 private:
  TextLines lines_;
  std::uint64_t records_ = 0;
};

}  // namespace olrank
