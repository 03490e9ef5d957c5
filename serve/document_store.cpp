#include "serve/document_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <shared_mutex>
#include <string_view>
#include <utility>

#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "serve/api_error.h"

namespace olrank {
namespace {

/// A place in the index, which each version has for good, with room to grow.
constexpr std::size_t kBytesOfVersion = 32;

std::string line_of(std::uint64_t number, std::string_view body) {
  std::string line = record_line(number, body);
  line.pop_back();
  return line;
}

StoredDocument removed_document(DocId id, std::int64_t version) {
  StoredDocument removed;
  removed.id = std::move(id);
  removed.version = version;
  removed.is_deleted = true;
  return removed;
}

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
    : DocumentStore(settings, documents_head(settings.schema, settings.normalisation)) {}

DocumentStore::DocumentStore(const Settings& settings, std::string head)
    : DocumentVersions(settings.folder / kFile, nullptr),
      head_(std::move(head)),
      before_(settings.before),
      shared_(settings.shared),
      patience_(settings.patience) {
  counts_.byte_limit = settings.bytes;
  if (settings.folder.empty()) {
    known_ = shared_->chain();  // what comes later is taken again
    lines_ = known_.round;
    take_line(line_of(0, head_), -1, {});
    last_head_ = head_;
    shared_->each_newest([this](std::string_view body) {
      take_line(line_of(0, body), -1, [this](auto* document, auto) { take(std::move(*document)); });
    });
    return;
  }
  log_.emplace(settings.folder / kFile, 0, settings.accept_loss);
  log_->say_of_disk({"Documents are refused until there is space.", "Documents are stored again."});
  // After a request that a kill has cut short, the head says again where the documents begin.
  writes_head_ = load(log_->bytes(), [this](auto* document, auto line) { take(document, line); });
  if (shared_ != nullptr) known_ = RecordChain::of(*log_, 0, lines_ = log_->rounds());
  writes_head_ = writes_head_ || last_head_ != head_;
  if (last_head_ == head_ || last_head_ == before_.head || counts_.documents == 0) return;
  log_warning("{}: Requests cannot name {} of another schema: put them again.",
              (settings.folder / kFile).string(), counted(counts_.documents, "document"));
  forget_all();
}

bool DocumentStore::begin_writing(std::function<void()> guard) {
  if (log_->rounds() > 0) log_->begin_writing();
  log_->guard_writes(std::move(guard));
  return !before_.convert || convert_or_forget();
}

bool DocumentStore::change_schema(std::string head, Conversion before) {
  head_ = std::move(head);
  writes_head_ = true;
  before_ = std::move(before);
  for (auto& [id, latest] : latest_) latest.is_of_before = true;
  return convert_or_forget();
}

bool DocumentStore::convert_or_forget() {
  std::string failure = "The service had no schema before.";
  try {
    if (before_.convert) return convert(), true;
  } catch (const StateLost&) {
    throw;
  } catch (const Error& error) {
    failure = fmt::format("{} The next start gives them the present one.", error.what());
  }
  if (counts_.documents > 0)
    log_warning("Requests cannot name {} of the schema before: put them again. {}",
                counted(counts_.documents, "document"), failure);
  const std::unique_lock lock(mutex_);
  forget_all();
  return !before_.convert;
}

/// A record has documents of one schema, so that all get the present one. Their versions, which are the
/// caller's, stay: records tell which schema they mean.
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
      StoredDocument& document = converted.emplace_back(*latest_.at(ids[i]).document);
      // A schema that comes back finds each version as it was.
      if (const auto same = earlier(ids[i], document.version, head_)) {
        document = *same;
      } else {
        before_.convert(document);
      }
    }
    append(std::move(converted), 0, writing);
  }
}

/// A replica has no places.
std::size_t DocumentStore::bytes_of_version() const {
  return log_ ? kBytesOfVersion : 0;
}

/// Two maps have the ID for good, each with a node of its own.
std::size_t DocumentStore::bytes_of_name(const std::string& id) {
  return 2 * (heap_bytes(sizeof(std::pair<const std::string, Latest>) + 24) + heap_bytes(id));
}

std::size_t DocumentStore::bytes_of(const StoredDocument& document) {
  return heap_bytes(sizeof(StoredDocument) + 16) + heap_bytes(document.id.text) +
         heap_bytes(document.columns) + heap_bytes(document.fields) + heap_bytes(document.times);
}

void DocumentStore::take(StoredDocument* document, std::string_view line) {
  if (document != nullptr) return take(std::move(*document));
  const std::string head(body_of(line));
  if (head != head_ || last_head_ != before_.head) forget_all();
  last_head_ = head;
}

void DocumentStore::take(StoredDocument&& document) {
  const auto [place, is_new] = latest_.try_emplace(document.id.text);
  Latest& latest = place->second;
  if (is_new) counts_.bytes += bytes_of_name(place->first);
  if (!document.is_deleted) {
    ++counts_.versions;
    counts_.bytes += bytes_of_version();
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

void DocumentStore::settle(std::unique_lock<std::mutex>& writing, std::span<const std::string> ids) {
  if (shared_ != nullptr) return write_or_reject([this] { catch_up_now(); });
  settled_.wait(writing, [&] {
    return std::none_of(ids.begin(), ids.end(),
                        [this](const std::string& id) { return pending_.contains(id); });
  });
}

std::vector<std::int64_t> DocumentStore::put(const std::vector<StoredDocument>& given) {
  std::vector<std::string> ids;
  ids.reserve(given.size());
  for (const StoredDocument& document : given) ids.push_back(document.id.text);
  for (std::unique_lock writing(writing_);;) {  // nothing else changes the maps
    settle(writing, ids);
    std::vector<StoredDocument> documents = given;
    std::vector<std::int64_t> versions;
    std::size_t bytes = counts_.bytes + pending_bytes_;
    for (std::size_t i = 0; i < documents.size(); ++i) {
      StoredDocument& document = documents[i];
      const auto refuse = [&](const std::string& message) {
        throw ApiError(409, fmt::format("documents[{}].version", i), message)
            .with_code("version_goes_back");
      };
      const auto known = latest_.find(document.id.text);
      const Latest before = known == latest_.end() ? Latest() : known->second;
      if (document.version == 0) {
        document.version = before.version;
        if (!before.document || *before.document != document) ++document.version;
      }
      if (document.version < before.version)
        refuse(fmt::format("Document '{}' has version {}, which is newer than {}.",
                           excerpt(document.id.text), before.version, document.version));
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
      bytes += bytes_of(document) + bytes_of_version() - (before.document ? bytes_of(*before.document) : 0);
    }
    const std::size_t before = counts_.bytes + pending_bytes_;
    if (bytes > counts_.byte_limit && bytes > before)
      throw ApiError(507, "documents",
                     fmt::format("All documents would need {}, of them {} for the places of all versions, "
                                 "which stay, but --max-document-memory is {}: nothing was stored. Start "
                                 "with a higher limit, or delete documents.",
                                 readable_bytes(static_cast<double>(bytes)),
                                 readable_bytes(static_cast<double>(bytes_of_version()) *
                                                static_cast<double>(counts_.versions)),
                                 readable_bytes(static_cast<double>(counts_.byte_limit))));
    std::erase_if(documents, [this](const StoredDocument& document) {
      const auto known = latest_.find(document.id.text);
      return known != latest_.end() && known->second.version == document.version;
    });
    if (append(std::move(documents), bytes > before ? bytes - before : 0, writing)) return versions;
  }
}

std::int64_t DocumentStore::remove(std::span<const std::string> ids) {
  std::int64_t count = 0;  // also of those that a repeated command finds gone
  for (std::unique_lock writing(writing_);;) {
    settle(writing, ids);
    std::vector<StoredDocument> removed;
    std::unordered_set<std::string_view> seen;
    for (const std::string& id : ids) {
      const auto known = latest_.find(id);
      if (known == latest_.end() || !known->second.document || !seen.insert(id).second) continue;
      removed.push_back(removed_document(known->second.document->id, known->second.version));
    }
    count = std::max<std::int64_t>(count, std::ssize(removed));
    if (append(std::move(removed), 0, writing)) return count;
  }
}

/// Readers see the documents once they are on disk. Others may write meanwhile and share the flush, but not
/// the same documents, whose versions depend on how it ends.
bool DocumentStore::append(std::vector<StoredDocument> documents, std::size_t bytes,
                           std::unique_lock<std::mutex>& writing) {
  if (shared_ != nullptr) {
    constexpr std::size_t kMost = 20'000;  // in one step of the server, for which all others wait
    if (documents.size() > kMost)
      throw ApiError(413, "",
                     fmt::format("The request changes {}, but one of a shared log may change {} at most: "
                                 "nothing was changed. Send them in several requests.",
                                 counted(documents.size(), "document"), kMost));
    std::vector<RedisDocuments::Line> lines;
    if ((known_.round == 0 || writes_head_) && !documents.empty()) lines.push_back({"", head_});
    for (std::size_t i = 0; i < documents.size(); ++i)
      lines.push_back({documents[i].id.text, document_body(documents[i], documents.size() - 1 - i)});
    bool is_next = false;
    write_or_reject([&] {
      is_next = shared_->append(known_, lines, true);
      catch_up_now();
    });
    writes_head_ = writes_head_ && !is_next;
    return is_next;
  }
  if (documents.empty()) return true;
  const bool begins = writes_head_;
  std::vector<std::string> bodies;
  if (begins) bodies.push_back(head_);
  for (std::size_t i = 0; i < documents.size(); ++i) {
    bodies.push_back(document_body(documents[i], documents.size() - 1 - i));
    pending_.insert(documents[i].id.text);
  }
  pending_bytes_ += bytes;
  const FileLog::Ticket ticket = log_->enqueue(std::move(bodies));
  if (!begins) writing.unlock();
  std::exception_ptr failure;
  try {
    write_or_reject([&] { log_->await(ticket); });
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
  return true;
}

void DocumentStore::catch_up() {
  const std::lock_guard writing(writing_);
  catch_up_now();
}

void DocumentStore::send_missing() {
  const std::lock_guard writing(writing_);
  RecordChain there = shared_->chain();
  for (; there.round < known_.round; there = shared_->chain()) send_missing_now(there);
  // Documents that others store have the present schema, also if this log has none of it yet.
  if (known_.round > 0 && there.hash == known_.hash && last_head_ != head_)
    shared_->append(known_, {{"", head_}}, false);
}

void DocumentStore::catch_up_now() {
  for (;;) {
    const RecordChain there = shared_->chain();
    if (there.round < known_.round) {
      send_missing_now(there);
      continue;
    }
    behind_since_.reset();
    if (there.round == known_.round) {
      if (there.hash == known_.hash) return;
      if (log_) part("they differ");
      load_newest();
      continue;
    }
    std::vector<std::string> bodies;
    RecordChain chain = known_;
    std::string differs;
    for (StreamRecord& line : shared_->lines(known_.round, there.round)) {
      if (line.round != chain.round + 1) break;
      if (line.before.value_or("") != chain.hash)
        differs = fmt::format("line {} follows others", line.round);
      if (!differs.empty()) break;
      chain.add(line.body);
      bodies.push_back(std::move(line.body));
    }
    if (!bodies.empty()) {
      take_lines(std::move(bodies));
    } else if (!log_) {
      load_newest();  // the lines have left the stream
    } else if (!differs.empty()) {
      part(differs);
    } else if (shared_->chain().round >= there.round) {
      throw_error<StateLost>(
          "{}: The stream was trimmed before {} had it: lines after {} are missing. Copy "
          "documents*.jsonl*, feedback*.jsonl* and checkpoint of another learner of this prefix into the "
          "folder.",
          shared_->place(), log_->path().string(), known_.round);
    }
  }
}

void DocumentStore::part(const std::string& why) const {
  throw_error<StateLost>(
      "{} has other documents than {}, although both have line {}: {}. The server lost some, and other "
      "processes went on, or the folder belongs to another prefix. Nothing was changed: begin another "
      "prefix with --import-log, and put the documents again.",
      shared_->place(), log_->path().string(), known_.round, why);
}

/// The server came back with fewer lines, or is new and the folder is not.
void DocumentStore::send_missing_now(const RecordChain& there) {
  if (!log_) {
    const auto now = std::chrono::steady_clock::now();
    if (!behind_since_) behind_since_ = now;
    if (now - *behind_since_ < patience_ || !shared_->has_learner(patience_))
      throw_error<IoError>(
          "{}: The server came back with fewer documents than this process has: they are stored again once "
          "a "
          "learner has sent the others.",
          shared_->place());
    log_warning(
        "{}: The server has {} of documents, and no learner that runs has the others, {} to {}: this "
        "process goes on without them. Put these documents again.",
        shared_->place(), counted(there.round, "line"), there.round + 1, known_.round);
    return load_newest();
  }
  if (RecordChain::of(*log_, 0, there.round).hash != there.hash) part("earlier ones differ");
  log_warning("{}: The server has {} of documents, and this log {}: sending it the others.",
              shared_->place(), counted(there.round, "line"), known_.round);
  std::vector<RedisDocuments::Line> newest;
  for (const auto& [id, latest] : latest_)
    newest.push_back(
        {id, document_body(
                 latest.document ? *latest.document : removed_document({id, false}, latest.version), 0)});
  if (!shared_->set_newest(there, newest)) return;
  constexpr std::size_t kAtOnce = 1000;
  RecordChain sent{0, 0, {}};
  std::vector<RedisDocuments::Line> lines;
  FileLog::Reader reader(*log_, 0);
  for (std::string_view line; sent.round + lines.size() < known_.round && reader.next(line);) {
    if (sent.round < there.round) {
      sent.add(body_of(line));
      continue;
    }
    lines.push_back({"", std::string(body_of(line))});
    if (lines.size() < kAtOnce && sent.round + lines.size() < known_.round) continue;
    if (!shared_->append(sent, lines, false)) return;  // so does another learner
    for (const RedisDocuments::Line& one : lines) sent.add(one.body);
    lines.clear();
  }
}

void DocumentStore::take_lines(std::vector<std::string> bodies) {
  std::vector<std::string> lines;
  lines.reserve(bodies.size());
  for (const std::string& body : bodies) lines.push_back(line_of(known_.round + lines.size() + 1, body));
  FileLog::Ticket ticket;
  if (log_) {
    require_lines(lines);
    ticket = log_->enqueue(bodies);
    log_->await(ticket);
  }
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    known_.add(bodies[i]);
    const std::unique_lock lock(mutex_);
    take_line(lines[i], log_ ? FileLog::begin_of(ticket, i) : -1,
              [this](auto* document, auto text) { take(document, text); });
  }
  lines_ = known_.round;
}

/// Lists go on with the documents before until it has all.
void DocumentStore::load_newest() {
  DocumentStore loaded({{}, "", "", counts_.byte_limit, false, {}, shared_}, head_);
  {
    const std::unique_lock lock(mutex_);
    take_line(line_of(0, head_), -1, {});  // ends a request of which only the first lines came
    last_head_ = head_;
    latest_.swap(loaded.latest_);
    std::swap(counts_, loaded.counts_);
  }
  lines_ = loaded.lines_.load();
  known_ = std::move(loaded.known_);
}

void DocumentStore::start() {
  if (shared_ == nullptr) return;
  following_ = std::thread([this] {
    std::string said;
    while (!stopping_) {
      try {
        shared_->wait(lines_);
        catch_up();
        said.clear();
        continue;
      } catch (const RedisAway&) {  // the client has said so
      } catch (const std::exception& error) {
        if (std::exchange(said, error.what()) != error.what()) log_warning("{}", error.what());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
}

void DocumentStore::stop() {
  stopping_ = true;
  if (following_.joinable()) following_.join();
}

std::shared_ptr<const StoredDocument> DocumentStore::newest(const std::string& id) const {
  const std::shared_lock lock(mutex_);
  const auto known = latest_.find(id);
  return known == latest_.end() ? nullptr : known->second.document;
}

void DocumentStore::find_newest(std::span<const DocId> docs, std::span<const std::int32_t> wanted,
                                std::vector<std::shared_ptr<const StoredDocument>>& found) const {
  found.assign(docs.size(), nullptr);
  std::vector<const Latest*> latest(wanted.size());
  const std::shared_lock lock(mutex_);
  // Sharing a document orders all reads: none of the next one would begin before.
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto known = latest_.find(docs[wanted[i]].text);
    if (known != latest_.end()) latest[i] = &known->second;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (latest[i] != nullptr) found[wanted[i]] = latest[i]->document;
  }
}

const StoredDocument* DocumentStore::newest_in_memory(const std::string& id) const {
  const auto known = latest_.find(id);
  return known == latest_.end() ? nullptr : known->second.document.get();
}

bool DocumentStore::is_empty() const {
  const std::shared_lock lock(mutex_);
  return latest_.empty();
}

DocumentStore::Counts DocumentStore::counts() const {
  const std::shared_lock lock(mutex_);
  Counts counts = counts_;
  if (log_) counts.log_bytes = log_->bytes();
  return counts;
}

}  // namespace olrank
