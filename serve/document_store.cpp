#include "serve/document_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <shared_mutex>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "serve/api_error.h"

namespace olrank {
namespace {

/// A place in the index, which each version has for good, with room to grow.
constexpr std::size_t kBytesOfVersion = 32;

/// Calls `write` and turns what a disk refuses into an answer.
template <class Write>
void write_or_reject(const Write& write) {
  try {
    write();
  } catch (const IoError& error) {
    throw ApiError(dynamic_cast<const LogFull*>(&error) != nullptr ? 507 : 503, "", error.what());
  }
}

}  // namespace

DocumentStore::DocumentStore(const Settings& settings)
    : DocumentVersions(settings.folder / kFile, nullptr),
      log_(settings.folder / kFile, 0, settings.accept_loss),
      head_(documents_head(settings.schema, settings.normalisation)),
      before_(settings.before) {
  counts_.byte_limit = settings.bytes;
  log_.say_of_disk({"Documents are refused until there is space.", "Documents are stored again."});
  // After a request that a kill has cut short, the head says again where the documents begin.
  writes_head_ = load(log_.bytes(), [this](StoredDocument* document, std::string_view line) {
    if (document != nullptr) return take(std::move(*document));
    const std::string head(body_of(line));
    if (head != head_ || last_head_ != before_.head) forget_all();
    last_head_ = head;
  });
  writes_head_ = writes_head_ || last_head_ != head_;
  if (last_head_ == head_ || last_head_ == before_.head || counts_.documents == 0) return;
  log_warning("{}: Requests cannot name {} of another schema: put them again.",
              (settings.folder / kFile).string(), counted(counts_.documents, "document"));
  forget_all();
}

void DocumentStore::begin_writing(std::function<void()> guard) {
  if (log_.rounds() > 0) log_.begin_writing();
  log_.guard_writes(std::move(guard));
  if (before_.convert) convert();
}

bool DocumentStore::change_schema(std::string head, Conversion before) {
  head_ = std::move(head);
  writes_head_ = true;
  before_ = std::move(before);
  for (auto& [id, latest] : latest_) latest.is_of_before = true;
  std::string failure = "The service had no schema before.";
  try {
    if (before_.convert) return convert(), true;
  } catch (const Error& error) {
    failure = error.what();
  }
  if (counts_.documents > 0)
    log_warning("Requests cannot name {} of the schema before: put them again. {}",
                counted(counts_.documents, "document"), failure);
  const std::unique_lock lock(mutex_);
  forget_all();
  return !before_.convert;
}

/// A record has documents of one schema, so that all get versions of the present one.
void DocumentStore::convert() {
  std::unique_lock writing(writing_);
  constexpr std::size_t kAtOnce = 10'000;  // a kill leaves the rest for the next start
  std::vector<std::string> ids;
  for (const auto& [id, latest] : latest_) {
    if (latest.document && latest.is_of_before) ids.push_back(id);
  }
  for (std::size_t i = 0; i < ids.size();) {
    std::vector<StoredDocument> converted;
    for (const std::size_t end = std::min(ids.size(), i + kAtOnce); i < end; ++i) {
      before_.convert(converted.emplace_back(*latest_.at(ids[i]).document));
      ++converted.back().version;
    }
    append(std::move(converted), 0, writing);
  }
}

/// Two maps have the ID for good, each with a node of its own.
std::size_t DocumentStore::bytes_of_name(const std::string& id) {
  return 2 * (heap_bytes(sizeof(std::pair<const std::string, Latest>) + 24) + heap_bytes(id));
}

std::size_t DocumentStore::bytes_of(const StoredDocument& document) {
  return heap_bytes(sizeof(StoredDocument) + 16) + heap_bytes(document.id.text) +
         heap_bytes(document.columns) + heap_bytes(document.fields) + heap_bytes(document.times);
}

void DocumentStore::take(StoredDocument&& document) {
  const auto [place, is_new] = latest_.try_emplace(document.id.text);
  Latest& latest = place->second;
  if (is_new) counts_.bytes += bytes_of_name(place->first);
  if (!document.is_deleted) {
    ++counts_.versions;
    counts_.bytes += kBytesOfVersion;
  }
  if (latest.document) {
    --counts_.documents;
    counts_.bytes -= bytes_of(*latest.document);
  }
  latest.version = document.version;
  latest.is_of_before = last_head_ != head_;
  latest.document.reset();
  if (document.is_deleted) return;
  document.columns.shrink_to_fit();
  document.fields.shrink_to_fit();
  document.times.shrink_to_fit();
  ++counts_.documents;
  counts_.bytes += bytes_of(document);
  latest.document = std::make_shared<const StoredDocument>(std::move(document));
}

void DocumentStore::forget_all() {
  for (auto& [id, latest] : latest_) {
    if (latest.document) counts_.bytes -= bytes_of(*latest.document);
    latest.document.reset();
  }
  counts_.documents = 0;
}

std::vector<std::int64_t> DocumentStore::put(std::vector<StoredDocument> documents) {
  std::unique_lock writing(writing_);  // nothing else changes the maps
  settled_.wait(writing, [&] {
    return std::none_of(documents.begin(), documents.end(),
                        [this](const StoredDocument& one) { return pending_.contains(one.id.text); });
  });
  std::vector<std::int64_t> versions;
  std::size_t bytes = counts_.bytes + pending_bytes_;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    StoredDocument& document = documents[i];
    const auto refuse = [&](const std::string& message) {
      throw ApiError(409, fmt::format("documents[{}].version", i), message).with_code("version_goes_back");
    };
    const auto known = latest_.find(document.id.text);
    const Latest before = known == latest_.end() ? Latest() : known->second;
    if (document.version == 0) {
      document.version = before.version;
      if (!before.document || *before.document != document) ++document.version;
    }
    if (document.version < before.version)
      refuse(fmt::format("Document '{}' has version {}, which is newer than {}.", excerpt(document.id.text),
                         before.version, document.version));
    if (document.version == before.version && !before.document)
      refuse(fmt::format("Document '{}' was deleted after version {}: give it a higher one, or none.",
                         excerpt(document.id.text), before.version));
    if (document.version == before.version && !(before.document && *before.document == document))
      refuse(fmt::format(
          "Document '{}' has another content in version {}: give the new content a higher version.",
          excerpt(document.id.text), before.version));
    versions.push_back(document.version);
    if (document.version == before.version) continue;
    if (known == latest_.end()) bytes += bytes_of_name(document.id.text);
    bytes += bytes_of(document) + kBytesOfVersion - (before.document ? bytes_of(*before.document) : 0);
  }
  const std::size_t before = counts_.bytes + pending_bytes_;
  if (bytes > counts_.byte_limit && bytes > before)
    throw ApiError(
        507, "documents",
        fmt::format(
            "All documents would need {}, of them {} for the places of all versions, which "
            "stay, but --max-document-memory is {}: nothing was stored. Start with a higher limit, "
            "or delete documents.",
            readable_bytes(static_cast<double>(bytes)),
            readable_bytes(static_cast<double>(kBytesOfVersion) * static_cast<double>(counts_.versions)),
            readable_bytes(static_cast<double>(counts_.byte_limit))));
  std::erase_if(documents, [this](const StoredDocument& document) {
    const auto known = latest_.find(document.id.text);
    return known != latest_.end() && known->second.version == document.version;
  });
  append(std::move(documents), bytes > before ? bytes - before : 0, writing);
  return versions;
}

std::int64_t DocumentStore::remove(std::span<const std::string> ids) {
  std::unique_lock writing(writing_);
  settled_.wait(writing, [&] {
    return std::none_of(ids.begin(), ids.end(),
                        [this](const std::string& id) { return pending_.contains(id); });
  });
  std::vector<StoredDocument> removed;
  std::unordered_set<std::string_view> seen;
  for (const std::string& id : ids) {
    const auto known = latest_.find(id);
    if (known == latest_.end() || !known->second.document || !seen.insert(id).second) continue;
    StoredDocument& one = removed.emplace_back();
    one.id = known->second.document->id;
    one.version = known->second.version;
    one.is_deleted = true;
  }
  const std::int64_t count = std::ssize(removed);
  append(std::move(removed), 0, writing);
  return count;
}

/// Readers see the documents once they are on disk. Others may write meanwhile and share the flush, but not
/// the same documents, whose versions depend on how it ends.
void DocumentStore::append(std::vector<StoredDocument> documents, std::size_t bytes,
                           std::unique_lock<std::mutex>& writing) {
  if (documents.empty()) return;
  const bool begins = writes_head_;
  std::vector<std::string> bodies;
  if (begins) bodies.push_back(head_);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    bodies.push_back(document_body(documents[i], documents.size() - 1 - i));
    pending_.insert(documents[i].id.text);
  }
  pending_bytes_ += bytes;
  const FileLog::Ticket ticket = log_.enqueue(std::move(bodies));
  if (!begins) writing.unlock();
  std::exception_ptr failure;
  try {
    write_or_reject([&] { log_.await(ticket); });
  } catch (...) {
    failure = std::current_exception();
  }
  if (!begins) writing.lock();
  pending_bytes_ -= bytes;
  for (const StoredDocument& document : documents) pending_.erase(document.id.text);
  settled_.notify_all();
  if (failure) std::rethrow_exception(failure);
  if (begins) {
    const std::unique_lock lock(mutex_);
    if (last_head_ != head_) add_head(record_line(0, head_), FileLog::begin_of(ticket, 0));
    last_head_ = head_;
    writes_head_ = false;
  }
  constexpr std::size_t kAtOnce = 1000;  // documents, between which lists are made
  for (std::size_t i = 0; i < documents.size();) {
    const std::unique_lock lock(mutex_);
    for (const std::size_t end = std::min(documents.size(), i + kAtOnce); i < end; ++i) {
      add(documents[i], FileLog::begin_of(ticket, i + (begins ? 1 : 0)));
      take(std::move(documents[i]));
    }
  }
}

std::shared_ptr<const StoredDocument> DocumentStore::newest(const std::string& id) const {
  const std::shared_lock lock(mutex_);
  const auto known = latest_.find(id);
  return known == latest_.end() ? nullptr : known->second.document;
}

const StoredDocument* DocumentStore::in_memory(const std::string& id, std::int64_t version) const {
  const auto known = latest_.find(id);
  return known != latest_.end() && known->second.version == version ? known->second.document.get()
                                                                    : nullptr;
}

bool DocumentStore::is_empty() const {
  const std::shared_lock lock(mutex_);
  return latest_.empty();
}

DocumentStore::Counts DocumentStore::counts() const {
  const std::shared_lock lock(mutex_);
  Counts counts = counts_;
  counts.log_bytes = log_.bytes();
  return counts;
}

}  // namespace olrank
