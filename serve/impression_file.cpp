#include "serve/impression_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/io/fingerprint.h"
#include "core/runtime/log.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "serve/api_error.h"
#include "serve/open_lists.h"
#include "serve/own_file.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr NumberedFiles kImpressionFiles{"impressions-", ".bin"};
constexpr std::size_t kImpressionFileBytes = 16'000'000;
constexpr int kImpressionFilesOfAge = 8;
constexpr std::size_t kListHead =
    sizeof(std::uint32_t) + sizeof(std::uint64_t);  // size and checksum of a list

/// Its bytes grow in memory that its thread keeps, so that what it returns takes no more than its size.
class ListWriter {
 public:
  ListWriter() { bytes_.clear(); }
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (write(fields), ...);
  }
  std::string finish() { return bytes_; }

 private:
  template <class T>
  void write(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void write(const std::optional<bool>& value) { write(static_cast<std::int8_t>(value ? *value : -1)); }
  void write(const std::string& text) {
    write(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void write(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    write(static_cast<std::uint32_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void write(const std::vector<DocId>& ids) {
    write(static_cast<std::uint32_t>(ids.size()));
    for (const DocId& id : ids) (*this)(id.is_number, id.text);
  }

  static thread_local std::string bytes_;
};
thread_local std::string ListWriter::bytes_;

/// After the end of the bytes, everything is zero or empty.
class ListReader {
 public:
  explicit ListReader(std::string_view bytes) : bytes_(bytes) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }
  template <class T>
  T next() {
    T value{};
    read(value);
    return value;
  }
  bool is_whole() const { return !failed_ && bytes_.empty(); }

 private:
  template <class T>
  void read(T& value) {
    if (const std::string_view taken = take(sizeof(T)); !taken.empty())
      std::memcpy(&value, taken.data(), sizeof(T));
  }
  void read(bool& value) { value = next<std::uint8_t>() != 0; }
  void read(std::optional<bool>& value) {
    if (const auto number = next<std::int8_t>(); number >= 0) value = number != 0;
  }
  void read(std::string& text) { text = take(next<std::uint32_t>()); }
  template <class T>
  void read(std::vector<T>& values) {
    const std::string_view taken = take(std::size_t{next<std::uint32_t>()} * sizeof(T));
    values.resize(taken.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), taken.data(), taken.size());
  }
  void read(std::vector<DocId>& ids) {
    ids.resize(std::min<std::size_t>(next<std::uint32_t>(), bytes_.size()));
    for (DocId& id : ids) (*this)(id.is_number, id.text);
  }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) {
      failed_ = true;
      size = 0;
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

/// All of a list but its ID, in the order of its bytes.
template <class Archive, class Record, class Shown>
void list_fields(Archive& archive, Record& record, Shown& shown) {
  archive(record.time, shown, record.query, record.docs, record.has_unshown, record.groups, record.snapshot,
          record.explored, record.propensity, record.incumbent, record.experiment, record.arm,
          record.bucket, record.teams, record.candidate, record.columns, record.inputs);
}

std::uint64_t list_checksum(std::string_view bytes) {
  return fingerprint_of(bytes).low;
}

/// Returns the list that bytes begin with; nothing unless it has an ID and its checksum.
std::optional<std::string_view> first_list(std::string_view bytes) {
  ListReader head(bytes);
  const auto size = head.next<std::uint32_t>();
  const auto checksum = head.next<std::uint64_t>();
  const auto id_size = head.next<std::uint32_t>();
  if (bytes.size() < kListHead || size > bytes.size() - kListHead || id_size > 40) return std::nullopt;
  const std::string_view list = bytes.substr(kListHead, size);
  const bool has_id = size > sizeof id_size && is_impression_id(list.substr(sizeof id_size, id_size));
  return has_id && list_checksum(list) == checksum ? std::optional(list) : std::nullopt;
}

/// Calls `visit` with each list of a file. Returns how many stretches of other bytes are between them and
/// behind them.
template <class Visit>
std::int64_t for_lists(const fs::path& path, const Visit& visit) {
  const std::optional<std::string> bytes = read_own_file(path);
  std::int64_t damaged = 0;
  bool was_list = true;
  for (std::string_view rest = bytes ? *bytes : std::string_view(); !rest.empty();) {
    const std::optional<std::string_view> list = first_list(rest);
    if (list) visit(*list);
    if (!list && was_list) ++damaged;
    was_list = list.has_value();
    rest.remove_prefix(list ? kListHead + list->size() : 1);
  }
  return damaged;
}

}  // namespace

std::string ImpressionFile::encoded(const FeedbackRecord& list, std::int64_t shown) {
  ListWriter out;
  list_fields(out, list, shown);
  const bool by_version = !list.versions.empty();
  if (!list.feature_names.empty() || by_version) out(list.feature_names, list.schema);
  if (by_version) out(list.versions, list.rest, list.given);
  return out.finish();
}

std::optional<OpenList> ImpressionFile::decoded(std::string_view bytes) {
  ListReader in(bytes);
  OpenList list;
  in(list.record.impression);
  list_fields(in, list.record, list.shown);
  if (!in.is_whole())
    in(list.record.feature_names, list.record.schema);  // a list without names ends before them
  if (!in.is_whole()) in(list.record.versions, list.record.rest, list.record.given);  // likewise
  const FeedbackRecord& record = list.record;
  const std::int64_t docs = std::ssize(record.docs);
  if (!in.is_whole() || list.shown < 1 || list.shown > docs) return std::nullopt;
  const std::int64_t inputs = std::ssize(record.inputs);
  const bool fits = inputs % docs == 0 && inputs / docs == record.columns && record.time >= 0 &&
                    (record.groups.empty() || std::ssize(record.groups) == docs) &&
                    (record.versions.empty() || record.versions.size() == docs + record.rest.size());
  return fits ? std::optional(std::move(list)) : std::nullopt;
}

void ImpressionFile::set_aside(const fs::path& folder) {
  kImpressionFiles.set_aside(folder);
}

ImpressionFile::ImpressionFile(Settings settings, std::int64_t utc, std::int64_t steady)
    : settings_(std::move(settings)) {
  if (settings_.starts_over) set_aside(settings_.folder);
  for (const fs::path& path : kImpressionFiles.in(settings_.folder)) {
    std::int64_t latest = 0;
    const std::int64_t damaged = for_lists(path, [&latest](std::string_view list) {
      ListReader in(list);
      in.next<std::string>();  // the ID
      latest = std::max(latest, in.next<std::int64_t>());
    });
    if (damaged > 0)
      log_warning("{}: Skipped {}, whose lists take no more feedback; the other lists are open again.",
                  path.string(), counted(damaged, "damaged place"));
    next_number_ = kImpressionFiles.number_of(path) + 1;
    const std::int64_t age = std::max<std::int64_t>(utc - latest, 0);
    segments_.push_back({path, steady - age, static_cast<std::size_t>(fs::file_size(path))});
  }
  remove_old(steady);
}

std::vector<OpenList> ImpressionFile::take_up(std::int64_t utc) const {
  std::vector<OpenList> lists;
  for (const Segment& segment : segments_) {
    for_lists(segment.path, [&](std::string_view bytes) {
      std::optional<OpenList> list = decoded(bytes);
      if (list && utc - list->record.time <= settings_.age_ms) lists.push_back(std::move(*list));
    });
  }
  return lists;
}

void ImpressionFile::remove_old(std::int64_t steady) {
  std::size_t bytes = 0;
  for (const Segment& segment : segments_) bytes += segment.bytes;
  const std::size_t kept = file_ ? 1 : 0;  // the one that is written to
  while (segments_.size() > kept &&
         (steady - segments_.front().latest > settings_.age_ms || bytes > settings_.bytes)) {
    std::error_code ignored;
    fs::remove(segments_.front().path, ignored);
    bytes -= segments_.front().bytes;
    segments_.pop_front();
  }
}

void ImpressionFile::begin_segment(std::int64_t steady) {
  file_.reset();
  remove_old(steady);
  const fs::path path = kImpressionFiles.path(settings_.folder, next_number_);
  const int descriptor = open_own_file(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) throw_error<IoError>("{} exists already.", path.string());
  file_.emplace(descriptor);
  ++next_number_;
  begun_ = steady;
  segments_.push_back({path, steady, 0});
}

std::string ImpressionFile::named(std::string_view id, std::string_view encoded) {
  ListWriter list;
  list(std::string(id));
  return list.finish().append(encoded);
}

void ImpressionFile::append(std::string_view id, std::string_view encoded, std::int64_t steady) {
  const std::string list = named(id, encoded);
  ListWriter head;
  head(static_cast<std::uint32_t>(list.size()), list_checksum(list));
  const std::string payload = head.finish() + list;

  const std::lock_guard lock(mutex_);
  try {
    if (settings_.guard) settings_.guard();
    const bool is_due = !file_ || segments_.back().bytes > kImpressionFileBytes ||
                        steady - begun_ > settings_.age_ms / kImpressionFilesOfAge;
    if (is_due) begin_segment(steady);
    const ssize_t written = ::write(file_->number(), payload.data(), payload.size());
    if (written != static_cast<ssize_t>(payload.size())) {
      const std::string why = written < 0 ? std::strerror(errno) : "The disk is full";
      // A reader would skip the part of a list, but would call it damaged.
      if (::ftruncate(file_->number(), static_cast<off_t>(segments_.back().bytes)) != 0)
        segments_.back().bytes += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
      throw_error<IoError>("{}: {}.", segments_.back().path.string(), why);
    }
    segments_.back().bytes += payload.size();
    segments_.back().latest = steady;
    failing_ = false;
  } catch (const IoError& error) {
    if (!std::exchange(failing_, true))
      log_warning("Lists that await feedback will not survive a restart: {}", error.what());
  }
}

std::string answer_bytes(const FeedbackRecord& record) {
  FeedbackRecord kept;
  kept.docs.assign(record.docs.begin(), record.docs.begin() + record.shown());
  std::string clicks;
  for (const std::uint8_t click : record.clicks) clicks += click != 0 ? '1' : '0';
  return ImpressionFile::named(clicks, ImpressionFile::encoded(kept, record.shown()));
}

std::optional<ImpressionStore::Outcome> repeated_answer(std::string_view bytes, std::uint64_t round,
                                                        std::span<const ImpressionStore::Click> clicks) {
  const std::optional<OpenList> list = ImpressionFile::decoded(bytes);
  if (!list) return std::nullopt;
  std::string given;
  for (const std::uint8_t click : clicks_on(list->record.docs, clicks)) given += click != 0 ? '1' : '0';
  if (given == list->record.impression) return ImpressionStore::Outcome{true, false, round};
  throw ApiError(
      409, "clicks",
      fmt::format("Different clicks were already accepted for this impression as round {}.", round))
      .with_code("other_clicks_accepted");
}

}  // namespace olrank
