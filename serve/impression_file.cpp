#include "serve/impression_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/error.h"
#include "core/io/fingerprint.h"
#include "core/runtime/log.h"
#include "serve/own_file.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr NumberedFiles kImpressionFiles{"impressions-", ".bin"};
constexpr std::size_t kImpressionFileBytes = 16'000'000;
constexpr int kImpressionFilesOfAge = 8;
constexpr std::size_t kListHead =
    sizeof(std::uint32_t) + sizeof(std::uint64_t);  // size and checksum of a list

class ListWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void numbers(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    number(static_cast<std::uint32_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void ids(const std::vector<DocId>& ids) {
    number(static_cast<std::uint32_t>(ids.size()));
    for (const DocId& id : ids) {
      number(static_cast<std::uint8_t>(id.is_number));
      text(id.text);
    }
  }
  std::string finish() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// After the end of the bytes, everything is zero or empty.
class ListReader {
 public:
  explicit ListReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value{};
    if (const std::string_view taken = take(sizeof(T)); taken.size() == sizeof(T))
      std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  template <class T>
  std::vector<T> numbers() {
    const std::string_view taken = take(std::size_t{number<std::uint32_t>()} * sizeof(T));
    std::vector<T> values(taken.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), taken.data(), taken.size());
    return values;
  }
  std::vector<DocId> ids() {
    std::vector<DocId> ids(std::min<std::size_t>(number<std::uint32_t>(), bytes_.size()));
    for (DocId& id : ids) {
      id.is_number = number<std::uint8_t>() != 0;
      id.text = text();
    }
    return ids;
  }
  bool is_whole() const { return !failed_ && bytes_.empty(); }

 private:
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

std::uint64_t list_checksum(std::string_view bytes) {
  return fingerprint_of(bytes).low;
}

/// Calls `visit` with each list of a file, up to one that is not whole.
template <class Visit>
void for_lists(const fs::path& path, const Visit& visit) {
  const std::optional<std::string> bytes = read_own_file(path);
  std::string_view rest = bytes ? *bytes : std::string_view();
  while (rest.size() >= kListHead) {
    ListReader head(rest.substr(0, kListHead));
    const auto size = head.number<std::uint32_t>();
    const auto checksum = head.number<std::uint64_t>();
    if (size > rest.size() - kListHead) return;
    const std::string_view list = rest.substr(kListHead, size);
    if (list_checksum(list) != checksum) return;
    rest.remove_prefix(kListHead + size);
    visit(list);
  }
}

}  // namespace

std::string ImpressionFile::encoded(const FeedbackRecord& list, std::int64_t shown) {
  ListWriter out;
  out.number(list.time);
  out.number(shown);
  out.text(list.query);
  out.ids(list.docs);
  out.number(static_cast<std::uint8_t>(list.has_unshown));
  out.numbers(list.groups);
  out.number(list.snapshot);
  out.number(static_cast<std::int8_t>(list.explored ? *list.explored : -1));
  out.numbers(list.propensity);
  out.ids(list.incumbent);
  out.text(list.experiment);
  out.text(list.arm);
  out.number(list.bucket);
  out.text(list.teams);
  out.ids(list.candidate);
  out.number(list.columns);
  out.numbers(list.inputs);
  return out.finish();
}

std::optional<OpenList> ImpressionFile::decoded(std::string_view bytes) {
  ListReader in(bytes);
  OpenList list;
  FeedbackRecord& record = list.record;
  record.impression = in.text();
  record.time = in.number<std::int64_t>();
  list.shown = in.number<std::int64_t>();
  record.query = in.text();
  record.docs = in.ids();
  record.has_unshown = in.number<std::uint8_t>() != 0;
  record.groups = in.numbers<DocGroup>();
  record.snapshot = in.number<std::int64_t>();
  if (const auto explored = in.number<std::int8_t>(); explored >= 0) record.explored = explored != 0;
  record.propensity = in.numbers<double>();
  record.incumbent = in.ids();
  record.experiment = in.text();
  record.arm = in.text();
  record.bucket = in.number<std::int64_t>();
  record.teams = in.text();
  record.candidate = in.ids();
  record.columns = in.number<std::int64_t>();
  record.inputs = in.numbers<float>();
  if (!in.is_whole() || list.shown < 1 || list.shown > std::ssize(record.docs)) return std::nullopt;
  return list;
}

void ImpressionFile::set_aside(const fs::path& folder) {
  kImpressionFiles.set_aside(folder);
}

ImpressionFile::ImpressionFile(Settings settings, std::int64_t now) : settings_(std::move(settings)) {
  if (settings_.starts_over) set_aside(settings_.folder);
  for (const fs::path& path : kImpressionFiles.in(settings_.folder)) {
    Segment segment{path, 0, static_cast<std::size_t>(fs::file_size(path))};
    for_lists(path, [&](std::string_view list) {
      ListReader in(list);
      in.text();  // the ID
      segment.latest = std::max(segment.latest, in.number<std::int64_t>());
    });
    next_number_ = kImpressionFiles.number_of(path) + 1;
    segments_.push_back(std::move(segment));
  }
  remove_old(now);
}

ImpressionFile::~ImpressionFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<OpenList> ImpressionFile::take_up(std::int64_t now) const {
  std::vector<OpenList> lists;
  for (const Segment& segment : segments_) {
    for_lists(segment.path, [&](std::string_view bytes) {
      std::optional<OpenList> list = decoded(bytes);
      if (list && now - list->record.time <= settings_.age_ms) lists.push_back(std::move(*list));
    });
  }
  return lists;
}

void ImpressionFile::remove_old(std::int64_t now) {
  std::size_t bytes = 0;
  for (const Segment& segment : segments_) bytes += segment.bytes;
  const std::size_t kept = descriptor_ >= 0 ? 1 : 0;  // the one that is written to
  while (segments_.size() > kept &&
         (now - segments_.front().latest > settings_.age_ms || bytes > settings_.bytes)) {
    std::error_code ignored;
    fs::remove(segments_.front().path, ignored);
    bytes -= segments_.front().bytes;
    segments_.pop_front();
  }
}

void ImpressionFile::begin_segment(std::int64_t now) {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  remove_old(now);
  const fs::path path = kImpressionFiles.path(settings_.folder, next_number_);
  descriptor_ = open_own_file(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) throw IoError(fmt::format("{} exists already.", path.string()));
  ++next_number_;
  begun_ = now;
  segments_.push_back({path, now, 0});
}

std::string ImpressionFile::named(std::string_view id, std::string_view encoded) {
  ListWriter list;
  list.text(id);
  return list.finish().append(encoded);
}

void ImpressionFile::append(std::string_view id, std::string_view encoded, std::int64_t now) {
  std::string payload;
  payload.append(kListHead, '\0').append(named(id, encoded));
  const auto size = static_cast<std::uint32_t>(payload.size() - kListHead);
  const std::uint64_t checksum = list_checksum(std::string_view(payload).substr(kListHead));
  std::memcpy(payload.data(), &size, sizeof(size));
  std::memcpy(payload.data() + sizeof(size), &checksum, sizeof(checksum));

  const std::lock_guard lock(mutex_);
  try {
    if (settings_.guard) settings_.guard();
    const bool is_due = descriptor_ < 0 || segments_.back().bytes > kImpressionFileBytes ||
                        now - begun_ > settings_.age_ms / kImpressionFilesOfAge;
    if (is_due) begin_segment(now);
    const ssize_t written = ::write(descriptor_, payload.data(), payload.size());
    if (written != static_cast<ssize_t>(payload.size())) {
      // Nothing behind a part of a list could be read.
      ::close(std::exchange(descriptor_, -1));
      throw IoError(fmt::format("{}: {}.", segments_.back().path.string(),
                                written < 0 ? std::strerror(errno) : "The disk is full"));
    }
    segments_.back().bytes += payload.size();
    segments_.back().latest = now;
    failing_ = false;
  } catch (const IoError& error) {
    if (!std::exchange(failing_, true))
      log_warning("Lists that await feedback will not survive a restart: {}", error.what());
  }
}

}  // namespace olrank
