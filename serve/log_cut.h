#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace olrank {

/// What a cut of a service's log moves, or would move.
struct LogCut {
  std::uint64_t to_round = 0;  // the last one that stays
  std::int64_t records = 0;    // after it
  std::int64_t bytes = 0;
  std::filesystem::path moved_to;                 // a file beside the log; empty if nothing follows
  std::optional<std::uint64_t> checkpoint_round;  // of a checkpoint that learned later rounds
  std::filesystem::path checkpoint_moved_to;      // empty without one
};

/// Takes the log of a stopped service back to a round, as a start with --to-round does: later records move
/// to a file beside the log, and a checkpoint that has learned them is set aside. With `dry_run` nothing
/// changes. Throws IoError if a service uses the folder, InvalidArgument for a folder without a service and
/// a round beyond its log, DataError for a log that is damaged before that round.
LogCut cut_log(const std::filesystem::path& state, std::uint64_t to_round, bool dry_run);

/// Copies the records of some rounds, numbered from 1, with new checksums. The log may be that of a running
/// service. Returns how many they are. Throws DataError for a line without a valid checksum,
/// InvalidArgument if the log has none of these rounds; then there is no copy.
std::uint64_t copy_rounds(const std::filesystem::path& log, std::uint64_t from_round,
                          std::optional<std::uint64_t> to_round, const std::filesystem::path& copy);

}  // namespace olrank
