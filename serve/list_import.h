#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "logs/shown_lists.h"

namespace olrank {

/// Lists that another program has shown, as a log that a service imports and olrank replays.
struct ListImport {
  ShownListSource source;
  std::filesystem::path features;
  std::string normalise;      // empty: the model's, or query-minmax
  std::string model;          // whose inputs the documents have; empty without one
  bool skip_missing = false;  // leave out documents without features
  std::filesystem::path out;
  bool force = false;  // overwrite `out`
};

struct ListImportResult {
  std::int64_t lists = 0;
  std::int64_t documents = 0;  // in lists
  std::int64_t clicks = 0;
  std::int64_t features = 0;
  std::int64_t missing_documents = 0;  // left out of their lists, for want of features
  std::int64_t lost_clicks = 0;        // on these
  std::int64_t lost_lists = 0;         // that had no other documents
  std::int64_t empty_lists = 0;        // of ubi: queries that found nothing
  std::int64_t stray_clicks = 0;       // of ubi: of no query in its file
};

/// Writes all lists or nothing. Inputs are normalised as a service normalises them: over the documents of
/// the list and those that it names as not shown. Throws DataError with file, line and field,
/// InvalidArgument if there is no list or the model takes other features.
ListImportResult import_lists(const ListImport& request);

nlohmann::ordered_json list_import_json(const ListImport& request, const ListImportResult& result);
std::string list_import_text(const ListImport& request, const ListImportResult& result);

/// It tells what a cut of a service's log moves, or would move.
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

struct LogCompaction {
  std::uint64_t records = 0;
  std::int64_t bytes_before = 0;  // on disk, of the log and the documents
  std::int64_t bytes = 0;
};

/// Compresses the whole log of a stopped service and its documents. Throws as cut_log().
LogCompaction compact_log(const std::filesystem::path& state);

/// Copies the records of some rounds, numbered from 1, with new checksums. The log may be that of a running
/// service. Returns how many they are. Throws DataError for a line without a valid checksum,
/// InvalidArgument if the log has none of these rounds; then there is no copy.
std::uint64_t copy_rounds(const std::filesystem::path& log, std::uint64_t from_round,
                          std::optional<std::uint64_t> to_round, const std::filesystem::path& copy);

}  // namespace olrank
