#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/data/normaliser.h"
#include "core/feedback/feedback_record.h"
#include "core/interface.h"
#include "logs/log_text.h"

namespace olrank {

/// A version of a document that a service stores.
struct StoredDocument {
  DocId id;
  std::int64_t version = 0;  // from 1; 0: not known yet
  bool is_deleted = false;
  std::vector<float> columns;  // raw, as the normalisation gets them if a request adds nothing
  // In a service with a schema: what its documents send, and by turns the place of a time there and the
  // time, in ms since 1970. Without a time its place has the default age.
  std::vector<float> fields;
  std::vector<std::int64_t> times;

  friend bool operator==(const StoredDocument&, const StoredDocument&) = default;
};

/// A line of a documents' log, without its number and checksum. `more` documents of the same request follow
/// it: without all of them, a reader takes none.
std::string document_body(const StoredDocument& document, std::size_t more);
/// Such a line, which begins the documents of a service with this schema and normalisation.
std::string documents_head(std::string_view schema, const std::string& normalisation);

/// All versions of the documents of a log of shown lists, whose records name them: documents.jsonl beside
/// that log. A service may write it meanwhile. Thread-safe.
class DocumentVersions : public Interface {
 public:
  static constexpr std::string_view kFile = "documents.jsonl";

  /// A file that does not exist has no versions, and a last line without its newline is none. Throws
  /// DataError for another line that is no document.
  explicit DocumentVersions(std::filesystem::path file);

  /// Gives a record the inputs that its versions say. Returns what is wrong with them; empty if nothing is.
  /// `lacks` tells whether that is a version that is not there.
  std::string apply(FeedbackRecord& record, bool* lacks = nullptr) const;

 protected:
  DocumentVersions(std::filesystem::path file, std::nullptr_t) : file_(std::move(file)) {}
  /// Gets each version in order, and null with the line of each head.
  using Visit = std::function<void(StoredDocument* document, std::string_view line)>;
  /// Reads the file up to this byte. Returns whether it ends within the documents of a request.
  bool load(std::int64_t end, const Visit& visit);
  /// Takes the next line, which begins at this byte of the file. Documents of one request wait for its last
  /// one. The mutex is held if others read.
  void take_line(std::string_view line, std::int64_t begin, const Visit& visit);
  /// Throws DataError for lines that take_line() would refuse next.
  void require_lines(const std::vector<std::string>& lines) const;
  /// Adds what begins at this byte of the file; the caller holds the mutex. A place below 0 marks a version
  /// that is never asked for.
  void add_head(std::string_view line, std::int64_t begin);
  void add(const StoredDocument& document, std::int64_t begin);
  /// Returns what this version of a document was under a head of this text; null if there was none.
  std::shared_ptr<const StoredDocument> earlier(const std::string& id, std::int64_t version,
                                                std::string_view head) const;
  /// Returns what was added last of a document, if it is in memory. The mutex is held.
  virtual const StoredDocument* newest_in_memory(const std::string&) const { return nullptr; }

  mutable std::shared_mutex mutex_;

 private:
  struct Place {
    std::int64_t version = 0;
    std::int64_t begin = 0;
  };
  struct Head {
    std::int64_t begin = 0;
    std::string text;
    FittedNormaliser normaliser;
    bool is_of(std::string_view schema) const;
  };
  struct Line {
    StoredDocument document;
    std::int64_t begin = 0;
    std::int64_t more = 0;  // documents of the same request that follow
  };
  /// Remembers what it has read, within a limit, as a log names the same versions again and again.
  std::shared_ptr<const StoredDocument> read(std::int64_t begin) const;
  const Head& head_of(const Place& place) const;
  /// The files of the documents' log as they are now.
  virtual std::shared_ptr<const LogText> text() const { return text_; }

  std::filesystem::path file_;
  std::shared_ptr<const LogText> text_;
  std::int64_t lines_ = 0;
  std::unordered_map<std::string, std::vector<Place>> places_;  // by ID, in the order of their versions
  std::vector<Head> heads_;
  std::vector<Line> held_;
  mutable std::mutex read_mutex_;
  mutable std::unordered_map<std::int64_t, std::shared_ptr<const StoredDocument>> read_;  // by begin
  mutable std::size_t read_bytes_ = 0;
};

}  // namespace olrank
