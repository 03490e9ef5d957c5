#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "logs/documents.h"
#include "serve/file_log.h"

namespace olrank {

/// The documents of a service, so that requests need only their IDs. Each version is a line of a log beside
/// that of the feedback, on disk before it is acknowledged and there for good; memory has the newest ones.
/// Documents of another schema stay in the log alone. Thread-safe. Errors of the caller are ApiErrors.
class DocumentStore : public DocumentVersions {
 public:
  /// Makes documents of one schema those of another; `head` is that of the first.
  struct Conversion {
    std::string head;
    std::function<void(StoredDocument&)> convert;
  };
  struct Settings {
    std::filesystem::path folder;
    std::string schema;                 // its digest; empty without one
    std::string normalisation;          // as normaliser_text()
    std::size_t bytes = 1'000'000'000;  // of memory
    bool accept_loss = false;           // of the log's end
    Conversion before{};                // of the documents of the schema before
  };
  /// Throws DataError for a damaged log, as FileLog does. Changes nothing.
  explicit DocumentStore(const Settings& settings);

  /// An accepted start: repairs the log. `guard` runs before each later write.
  void begin_writing(std::function<void()> guard);
  /// The service has another schema: each document gets a version of it. No request uses the documents
  /// meanwhile. False if the disk refuses them: then memory has none, and the next start tries again.
  bool change_schema(std::string head, Conversion before);

  /// Stores all of them, or none; returns their versions, which follow those before where they are 0. The
  /// same version with the same content changes nothing. Throws ApiError 409 for a version that goes back,
  /// 507 for a full memory or disk.
  std::vector<std::int64_t> put(std::vector<StoredDocument> documents);
  /// Forgets the newest version of each, which records and later lists of the log keep. Returns how many
  /// there were.
  std::int64_t remove(std::span<const std::string> ids);
  /// Keeps the log small, of which nothing is ever dropped.
  void keep_small(const FileLog::Segments& segments) { log_.keep_small(segments); }
  void compact(const FileLog::Segments& segments) { log_.compact(segments); }
  /// Null for an unknown or deleted document.
  std::shared_ptr<const StoredDocument> newest(const std::string& id) const;
  bool is_empty() const;
  /// Throws StateLost if the log was removed or replaced meanwhile.
  void require_writable() const {
    if (log_.rounds() > 0) log_.require_writable();
  }

  struct Counts {
    std::int64_t documents = 0;
    std::int64_t versions = 0;
    std::size_t bytes = 0;
    std::size_t byte_limit = 0;
    std::int64_t log_bytes = 0;
  };
  Counts counts() const;

 private:
  /// The latest version of each document of the present schema, also of deleted ones, which are null.
  struct Latest {
    std::int64_t version = 0;
    std::shared_ptr<const StoredDocument> document;
    bool is_of_before = false;  // of the schema before
  };
  static std::size_t bytes_of_name(const std::string& id);
  static std::size_t bytes_of(const StoredDocument& document);
  void take(StoredDocument&& document);
  void forget_all();
  std::shared_ptr<const LogText> text() const override { return log_.text(); }
  void convert();
  const StoredDocument* in_memory(const std::string& id, std::int64_t version) const override;
  /// Takes so much more memory. `writing` is held.
  void append(std::vector<StoredDocument> documents, std::size_t bytes,
              std::unique_lock<std::mutex>& writing);

  FileLog log_;
  std::string head_;       // of the present schema
  std::string last_head_;  // of the log
  Conversion before_;
  std::unordered_map<std::string, Latest> latest_;
  Counts counts_;
  std::mutex writing_;
  bool writes_head_ = false;                 // before the next document
  std::unordered_set<std::string> pending_;  // IDs that are being written
  std::size_t pending_bytes_ = 0;            // that they will take
  std::condition_variable settled_;
};

}  // namespace olrank
