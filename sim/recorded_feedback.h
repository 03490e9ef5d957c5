#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/fingerprint.h"

namespace olrank {

/// Rounds that were played elsewhere: which query was asked, what was shown and what was clicked.
class RecordedFeedback {
 public:
  /// Spans stay valid as long as the recording.
  struct Record {
    std::int64_t query = 0;                // number within the training part
    std::span<const std::int32_t> shown;   // docs, best first
    std::span<const std::uint8_t> clicks;  // 0 or 1 for each shown
  };

  /// JSON lines, one a round: {"qid": "10", "shown": [3, 0, 7], "clicks": [0, 1, 0]}. A shown document is
  /// its index within the query, in file order from 0, or its name as a text; clicks may be booleans; other
  /// keys are passed over, and so is a line with "config" and without "qid", so that a trace can be
  /// replayed. Plain, gzip or zstd. Throws DataError with file, line and column for the first line that is
  /// not like this or does not fit the data, and for a file without a round.
  static RecordedFeedback read(const std::filesystem::path& path, const Dataset& train);

  std::int64_t rounds() const { return static_cast<std::int64_t>(queries_.size()); }
  Record at(std::int64_t index) const;
  /// Of what is replayed, not of how the file wrote it down.
  Fingerprint fingerprint() const;

 private:
  RecordedFeedback() = default;

  std::vector<std::int64_t> queries_;     // [rounds]
  std::vector<std::int64_t> offsets_{0};  // [rounds + 1], shown documents before each round
  std::vector<std::int32_t> shown_;
  std::vector<std::uint8_t> clicks_;
};

}  // namespace olrank
