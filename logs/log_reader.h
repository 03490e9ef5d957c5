#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/clicks/reading_model.h"
#include "core/data/join.h"
#include "core/feedback/feedback_record.h"
#include "core/io/fingerprint.h"
#include "core/io/text_lines.h"
#include "logs/documents.h"

namespace olrank {

/// The lines of a log: of a service's feedback.jsonl with the segments before it. Throws IoError for a file
/// that cannot be read.
TextLines log_lines(const std::filesystem::path& file);

/// The records of a log, one after the other: feedback.jsonl of a service or its state folder, a trace of a
/// trial, or recorded feedback; plain, gzip or zstd. A service may write the log meanwhile. Nothing is
/// locked or changed.
class LogReader {
 public:
  /// Throws IoError for a file that cannot be read. Without `inputs`, records with versions of documents
  /// keep these, and no documents are read.
  explicit LogReader(const std::filesystem::path& log, bool inputs = true);

  /// A record without a round gets its place in the log. False at the end, and at a last line that is not
  /// complete yet. Throws DataError for a line that is no record.
  bool next(FeedbackRecord& record);
  /// Whether the record's line has the versions of its documents in place of their inputs.
  bool by_version() const { return by_version_; }
  /// The line is the record's; valid until next().
  std::string_view line() const { return lines_.line(); }
  std::int64_t number() const { return lines_.number(); }
  const std::string& file() const { return lines_.file(); }

 private:
  TextLines lines_;
  bool inputs_;
  std::optional<DocumentVersions> documents_;  // once a record names versions
  bool by_version_ = false;
  std::uint64_t records_ = 0;
};

/// Finds the documents of lists in the data that a log refers to.
class LogDocs {
 public:
  /// `named` says that documents with numbers have them as names, not as places in the query.
  explicit LogDocs(const Dataset& data, bool named = false);

  /// Both say what is wrong, which is empty if nothing is.
  std::string find_query(std::string_view name, std::int64_t& query) const;
  std::string find(std::int64_t query, std::span<const DocId> ids, std::vector<std::int32_t>& docs);

 private:
  const Dataset& data_;
  bool named_;
  DocFinder finder_;
  std::unordered_map<std::string_view, std::int64_t> queries_;
};

/// Numbers the documents of a log: one of a query is the same wherever its ID is the same.
class ClickDocNumbers {
 public:
  static constexpr std::int32_t kUnknown = -1;

  /// The document's number, and whether it is new.
  std::pair<std::int32_t, bool> add(std::string_view query, std::string_view doc) {
    const auto [known, is_new] =
        numbers_.try_emplace(identity(query, doc), static_cast<std::int32_t>(numbers_.size()));
    return {known->second, is_new};
  }
  std::int32_t find(std::string_view query, std::string_view doc) const {
    const auto known = numbers_.find(identity(query, doc));
    return known == numbers_.end() ? kUnknown : known->second;
  }
  std::int64_t size() const { return std::ssize(numbers_); }

 private:
  struct Hash {
    std::size_t operator()(const Fingerprint& fingerprint) const { return fingerprint.low; }
  };
  static Fingerprint identity(std::string_view query, std::string_view doc) {
    Fingerprinter identity;
    identity.add(query);
    identity.add(std::string_view("\0", 1));
    identity.add(doc);
    return identity.value();
  }

  std::unordered_map<Fingerprint, std::int32_t, Hash> numbers_;
};

struct LoggedClicksRequest {
  std::string log;           // as LogReader takes it
  double holdout = 0.2;      // share of lists that are held out
  std::int64_t ranks = 100;  // later ones are left out
  bool inputs = true;        // whether those of documents are kept
};

/// The lists of a log, in its order. A document of a query is the same one wherever its ID is the same.
struct LoggedClicks {
  ClickLists fitted;
  ClickLists held_out;
  ClickDocs docs;  // with their first inputs; columns = 0 where a list has none
  std::int64_t clicks = 0;
  std::int64_t longer_lists = 0;  // than the ranks that count

  std::int64_t lists() const { return fitted.size() + held_out.size(); }
};

/// Lists are held out by the hash of their impression, or of their number in the log where they have none.
/// Throws DataError with the line for a log that cannot be read, InvalidArgument for one without clicks and
/// for one that is too short to hold out lists.
LoggedClicks read_logged_clicks(const LoggedClicksRequest& request);

}  // namespace olrank
