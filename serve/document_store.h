#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "logs/documents.h"
#include "serve/file_log.h"
#include "serve/redis_documents.h"

namespace olrank {

/// The documents of a service, so that requests need only their IDs. Each version is a line of a log beside
/// that of the feedback, on disk before it is acknowledged and there for good; memory has the newest ones.
/// Documents of another schema stay in the log alone. Thread-safe. Errors of the caller are ApiErrors.
///
/// The processes of a shared log have the same documents: a change goes to the server behind all others,
/// and each process takes the lines from there, into memory and, beside a learner, into its own log. Lists
/// name what their process has taken, so that the learner finds each version that a record names.
class DocumentStore : public DocumentVersions {
 public:
  /// Makes documents of one schema those of another; `head` is that of the first.
  struct Conversion {
    std::string head;
    std::function<void(StoredDocument&)> convert;
  };
  struct Settings {
    std::filesystem::path folder;            // empty for a replica, which has no log of its own
    std::string schema;                      // its digest; empty without one
    std::string normalisation;               // as normaliser_text()
    std::size_t bytes = 1'000'000'000;       // of memory
    bool accept_loss = false;                // of the log's end
    Conversion before{};                     // of the documents of the schema before
    const RedisDocuments* shared = nullptr;  // null: of this process alone
    /// A replica waits so long, then goes on without documents that the server lost and no learner has.
    std::chrono::milliseconds patience{10'000};
  };
  /// Throws DataError for a damaged log, as FileLog does. Changes nothing.
  explicit DocumentStore(const Settings& settings);
  ~DocumentStore() override { stop(); }

  /// An accepted start: repairs the log. `guard` runs before each later write.
  /// False as change_schema().
  bool begin_writing(std::function<void()> guard);
  /// The service has another schema: each document gets it. No request uses the documents
  /// meanwhile. False if the disk refuses them: then memory has none, and the next start tries again.
  bool change_schema(std::string head, Conversion before);

  /// Stores all of them, or none; returns their versions, which follow those before where they are 0. The
  /// same version with the same content changes nothing. Throws ApiError 409 for a version that goes back,
  /// 507 for a full memory or disk.
  std::vector<std::int64_t> put(const std::vector<StoredDocument>& given);
  /// Forgets the newest version of each, which records and later lists of the log keep. Returns how many
  /// there were.
  std::int64_t remove(std::span<const std::string> ids);
  /// Keeps the log small, of which nothing is ever dropped.
  void keep_small(const FileLog::Segments& segments) { log_->keep_small(segments); }
  void compact(const FileLog::Segments& segments) { log_->compact(segments); }
  /// Null for an unknown or deleted document.
  std::shared_ptr<const StoredDocument> newest(const std::string& id) const;
  /// Finds newest() of the `wanted` ones of these documents; `found` has a place for each.
  void find_newest(std::span<const DocId> docs, std::span<const std::int32_t> wanted,
                   std::vector<std::shared_ptr<const StoredDocument>>& found) const;
  bool is_shared() const { return shared_ != nullptr; }
  bool is_empty() const;
  /// Throws StateLost if the log was removed or replaced meanwhile.
  void require_writable() const {
    if (log_ && log_->rounds() > 0) log_->require_writable();
  }

  /// Takes what the server of a shared log has more. Throws IoError, and StateLost for a log that has other
  /// lines than the server, or lacks some that the server has no more.
  void catch_up();
  /// Sends the server what it lacks and the log has. Throws likewise.
  void send_missing();
  /// Catches up on a thread of its own until stop().
  void start();
  void stop();
  /// Returns how many lines of the server it has.
  std::uint64_t lines() const { return lines_; }

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
  DocumentStore(const Settings& settings, std::string head);
  std::size_t bytes_of_version() const;
  static std::size_t bytes_of_name(const std::string& id);
  static std::size_t bytes_of(const StoredDocument& document);
  /// Visits the next line of the log.
  void take(StoredDocument* document, std::string_view line);
  void take(StoredDocument&& document);
  void forget_all();
  std::shared_ptr<const LogText> text() const override { return log_->text(); }
  void convert();
  bool convert_or_forget();
  const StoredDocument* newest_in_memory(const std::string& id) const override;
  /// The maps stay as they are, with all that these documents have, while `writing` is held.
  void settle(std::unique_lock<std::mutex>& writing, std::span<const std::string> ids);
  /// Takes so much more memory. `writing` is held. False if another process was faster: then nothing has
  /// changed.
  bool append(std::vector<StoredDocument> documents, std::size_t bytes,
              std::unique_lock<std::mutex>& writing);
  // `writing_` is held.
  void catch_up_now();
  void send_missing_now(const RecordChain& there);
  void take_lines(std::vector<std::string> bodies);
  void load_newest();
  [[noreturn]] void part(const std::string& why) const;

  std::optional<FileLog> log_;
  std::string head_;       // of the present schema
  std::string last_head_;  // of the log
  Conversion before_;
  std::unordered_map<std::string, Latest> latest_;
  Counts counts_;
  const RedisDocuments* shared_;
  RecordChain known_;  // of the server's lines
  std::chrono::milliseconds patience_;
  std::optional<std::chrono::steady_clock::time_point> behind_since_;  // the server has fewer lines
  std::atomic<std::uint64_t> lines_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread following_;
  std::mutex writing_;
  bool writes_head_ = false;                 // before the next document
  std::unordered_set<std::string> pending_;  // IDs that are being written
  std::size_t pending_bytes_ = 0;            // that they will take
  std::condition_variable settled_;
};

}  // namespace olrank
