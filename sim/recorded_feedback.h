#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/join.h"
#include "core/io/fingerprint.h"
#include "core/io/mapped_memory.h"

namespace olrank {

/// Recorded rounds: the query, the shown list, the clicks and what they are worth.
class RecordedFeedback {
 public:
  /// Spans stay valid as long as the recording.
  struct Record {
    std::int64_t query = 0;                // number within the training part
    std::span<const std::int32_t> shown;   // docs, best first
    std::span<const std::uint8_t> clicks;  // 0 or 1 for each shown
    std::span<const double> rewards;       // of each shown; empty: clicks are worth 1
  };

  /// JSON lines, one per round: {"qid": "10", "shown": [3, 0, 7], "clicks": [0, 1, 0]}. A shown document is
  /// its index within the query, in file order from 0, or its name as a string; clicks may be booleans. The
  /// log of a service may add "rewards", a number of at least 0 for each shown document.
  /// Other keys are ignored, and so is a line with "config" but no "qid", so a trace can be replayed.
  /// Plain, gzip or zstd. Throws DataError with file, line and column for the first malformed line, the
  /// first line that does not match the data, a file without rounds, and one whose rounds need more than
  /// `max_bytes` (half of the memory unless said). With a store, rounds beyond that go to files, unless
  /// they take much more than the text.
  static RecordedFeedback read(const std::filesystem::path& path, const Dataset& train,
                               std::optional<std::int64_t> max_bytes = std::nullopt,
                               const FeatureStore* store = nullptr);

  std::int64_t rounds() const { return rounds_in_files() + std::ssize(queries_); }
  Record at(std::int64_t index) const;
  /// The fingerprint is of the rounds, independent of how the file represents them.
  Fingerprint fingerprint() const;

 private:
  /// Rounds one after the other, as the vectors below hold the last of them.
  struct Piece {
    std::int64_t first_round = 0;
    std::span<const std::int64_t> queries;
    std::span<const std::int64_t> offsets;  // among this piece's documents
    std::span<const std::int32_t> shown;
    std::span<const std::uint8_t> clicks;
    std::span<const double> rewards;

    std::int64_t end_round() const { return first_round + std::ssize(queries); }
  };
  struct PieceInFile {
    Piece piece;
    MappedMemory memory;
    MappedMemory rewards;
  };

  RecordedFeedback() = default;
  std::uint64_t bytes() const;
  std::int64_t rounds_in_files() const {
    return in_files_.empty() ? 0 : in_files_.back().piece.end_round();
  }
  Piece in_memory() const { return {rounds_in_files(), queries_, offsets_, shown_, clicks_, rewards_}; }
  void move_to_file(const FeatureStore& store);
  void add_missing_rewards(const FeatureStore& store);
  template <class Visit>
  void for_pieces(const Visit& visit) const;

  std::vector<PieceInFile> in_files_;
  std::vector<std::int64_t> queries_;     // [rounds]
  std::vector<std::int64_t> offsets_{0};  // [rounds + 1], shown documents before each round
  std::vector<std::int32_t> shown_;
  std::vector<std::uint8_t> clicks_;
  std::vector<double> rewards_;  // of all rounds once one has them, else empty
};

}  // namespace olrank
