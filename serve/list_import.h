#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
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

}  // namespace olrank
