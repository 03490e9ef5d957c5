#include "logs/log_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCompressed = ".zst";
constexpr std::size_t kDigitsOfName = 15;
constexpr std::int64_t kLargestLine = std::int64_t{1} << 30;  // beyond the record of any request

/// The position in the name of a segment; nothing for another file.
std::optional<std::int64_t> begin_of(const fs::path& path, const fs::path& file) {
  std::string name = path.filename().string();
  if (name.ends_with(kCompressed)) name.resize(name.size() - kCompressed.size());
  const std::string stem = file.stem().string() + "-";
  const std::string end = file.extension().string();
  if (name.size() != stem.size() + kDigitsOfName + end.size() || !name.starts_with(stem) ||
      !name.ends_with(end))
    return std::nullopt;
  std::int64_t begin = 0;
  const char* digits = name.data() + stem.size();
  const auto [last, error] = std::from_chars(digits, digits + kDigitsOfName, begin);
  if (error != std::errc() || last != digits + kDigitsOfName || begin < 0) return std::nullopt;
  return begin;
}

/// The segments by their positions. A compressed one counts, if a kill has left both.
std::vector<std::pair<std::int64_t, fs::path>> segments_of(const fs::path& file) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code failed;
  const fs::path folder = file.parent_path();
  for (const auto& entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder, failed)) {
    const fs::path name = folder / entry.path().filename();
    if (const auto begin = begin_of(name, file)) found.emplace_back(*begin, name);
  }
  if (failed && failed != std::errc::no_such_file_or_directory)
    throw IoError("read the folder", folder.string(), failed.value());
  std::sort(found.begin(), found.end());
  const auto both = [](const auto& one, const auto& other) { return one.first == other.first; };
  std::reverse(found.begin(), found.end());  // "….jsonl.zst" comes after "….jsonl"
  found.erase(std::unique(found.begin(), found.end(), both), found.end());
  std::reverse(found.begin(), found.end());
  return found;
}

std::int64_t size_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_size : 0;
}

class LogStream : public ByteStream {
 public:
  explicit LogStream(std::shared_ptr<const LogText> text)
      : text_(std::move(text)), position_(text_->begin()) {}
  std::size_t read(std::span<char> bytes) override {
    if (left_.empty()) {
      lines_ = text_->lines_at(position_);
      position_ += std::ssize(lines_);
      left_ = lines_;
    }
    const std::size_t count = std::min(bytes.size(), left_.size());
    if (count > 0) std::memcpy(bytes.data(), left_.data(), count);
    left_.remove_prefix(count);
    return count;
  }

 private:
  std::shared_ptr<const LogText> text_;
  std::int64_t position_;
  std::string lines_;
  std::string_view left_;
};

}  // namespace

LogText::LogText(fs::path file, const LogText* before) : file_(std::move(file)) {
  constexpr int kTries = 100;  // the service may close or compress a segment at any moment
  for (int tries = 0; !open(before); ++tries) {
    if (tries == kTries)
      throw_error<IoError>("{}: Its files change all the time: try again when the service has less to do.",
                           file_.string());
  }
}

bool LogText::open(const LogText* before) {
  parts_.clear();
  const auto names = segments_of(file_);
  std::int64_t end = names.empty() ? 0 : names.front().first;
  for (const auto& [begin, path] : names) {
    std::shared_ptr<const Part> part;
    for (std::size_t i = 0; before != nullptr && i + 1 < before->parts_.size(); ++i) {
      // An empty one says where the log begins, until a segment takes its name.
      if (before->parts_[i]->path == path && before->parts_[i]->end > begin) part = before->parts_[i];
    }
    if (!part) part = open_part(path, begin);
    if (!part) return false;
    end = part->end;
    parts_.push_back(std::move(part));
  }
  std::shared_ptr<const Part> grows = open_part(file_, end, true);
  if (segments_of(file_) != names) return false;  // the file that was opened may be a segment by now
  if (!grows) {
    Part none;
    none.begin = end;
    none.path = file_;
    grows = std::make_shared<const Part>(std::move(none));
  }
  parts_.push_back(std::move(grows));
  return true;
}

std::shared_ptr<const LogText::Part> LogText::open_part(const fs::path& path, std::int64_t begin,
                                                        bool grows) {
  const int link = grows ? 0 : O_NOFOLLOW;  // a person may name a log by a link, but not its segments
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | link);
  if (number < 0 && errno == ENOENT) return nullptr;
  if (number < 0) throw IoError("read", path.string(), errno);
  const auto file = std::make_shared<Descriptor>(number);
  auto part = std::make_shared<Part>();
  part->begin = begin;
  part->path = path;
  if (path.extension() != kCompressed) {
    part->plain = file;
    part->end = begin + size_of(number);
    return part;
  }
  part->mapped = MappedMemory::of_descriptor(number, path);
  part->end = begin;
  for (std::string_view left = part->mapped.text(); !left.empty();) {
    const ZstdSizes sizes = zstd_sizes(left);
    part->whole = sizes.frame > 0;
    if (!part->whole) break;
    part->frames.push_back({part->end, left.substr(0, sizes.frame)});
    part->end += static_cast<std::int64_t>(sizes.content);
    left.remove_prefix(sizes.frame);
  }
  part->mapped.leave_pages();
  return part;
}

fs::path LogText::segment_path(const fs::path& file, std::int64_t begin) {
  return file.parent_path() /
         fmt::format("{}-{:0{}}{}", file.stem().string(), begin, kDigitsOfName, file.extension().string());
}

bool LogText::is_segment(const fs::path& path, const fs::path& file) {
  return begin_of(path, file).has_value();
}

bool LogText::exists() const {
  return parts_.size() > 1 || parts_.back()->plain;
}

std::int64_t LogText::end() const {
  const Part& grows = *parts_.back();
  return grows.begin + (grows.plain ? size_of(grows.plain->number()) : 0);
}

std::int64_t LogText::bytes_on_disk() const {
  std::int64_t bytes = end() - grows_at();
  for (const auto& part : parts_) {
    if (part->path != file_)
      bytes += part->plain ? part->end - part->begin : static_cast<std::int64_t>(part->mapped.size());
  }
  return bytes;
}

std::vector<LogText::Segment> LogText::segments() const {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
    const Part& part = *parts_[i];
    segments.push_back({part.begin, parts_[i + 1]->begin, part.path, !part.plain, part.whole});
  }
  return segments;
}

std::size_t LogText::index_of(std::int64_t position) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), position,
                       [](std::int64_t wanted, const auto& part) { return wanted < part->begin; });
  if (after == parts_.begin())
    throw_error<IoError>("{}: The log begins with byte {} now: its earlier records were dropped.",
                         file_.string(), begin());
  return static_cast<std::size_t>(after - parts_.begin()) - 1;
}

const LogText::Frame* LogText::frame_at(const Part& part, std::int64_t position) {
  if (position >= part.end) return nullptr;
  const auto after =
      std::upper_bound(part.frames.begin(), part.frames.end(), position,
                       [](std::int64_t wanted, const Frame& frame) { return wanted < frame.begin; });
  return &*std::prev(after);
}

std::string LogText::Part::content(const Frame& frame) const {
  try {
    std::string content = zstd_content(frame.bytes);
    mapped.leave_pages();
    return content;
  } catch (const BrokenStream& broken) {
    throw DataError(path.string(), 0, 0, broken.what());
  }
}

std::int64_t LogText::read(const Part& part, std::int64_t position, char* to, std::int64_t bytes) const {
  while (part.plain) {
    const ssize_t count = ::pread(part.plain->number(), to, bytes, position - part.begin);
    if (count >= 0) return count;
    if (errno != EINTR) throw IoError("read", part.path.string(), errno);
  }
  return 0;
}

std::string LogText::lines_at(std::int64_t position, std::int64_t bytes) const {
  const std::size_t index = index_of(position);
  const Part& part = *parts_[index];
  const bool grows = index + 1 == parts_.size();
  std::string lines;
  if (part.plain || grows) {
    const auto refuse = [&] {
      throw_data_error(part.path.string(), 0, 0,
                       "The line at byte {} of the log is larger than any record, or than the "
                       "memory: the file is damaged. Restore it from a backup.",
                       position);
    };
    try {
      for (std::int64_t had = 0, count = 1; count > 0; had += count) {
        if (had > kLargestLine) refuse();
        lines.resize(had + bytes);
        count = read(part, position + had, lines.data() + had, bytes);
        lines.resize(had + count);
        const std::size_t end = std::string_view(lines).substr(had).rfind('\n');
        if (end == std::string_view::npos) continue;
        // Behind the last newline is half a line, unless the log ends there.
        if (count == bytes) lines.resize(had + end + 1);
        if (count == bytes || !grows || lines.ends_with('\n')) break;
      }
    } catch (const std::bad_alloc&) {
      refuse();
    }
  } else if (const Frame* frame = frame_at(part, position)) {
    lines = part.content(*frame);
    lines.erase(0, static_cast<std::size_t>(position - frame->begin));
  }
  if (!lines.empty() || grows) return lines;
  throw_data_error(part.path.string(), 0, 0,
                   "Bytes {} to {} of the log are missing: the segment is damaged or cut short, "
                   "or one that followed it is gone. Restore it from a backup.",
                   position, parts_[index + 1]->begin);
}

std::string LogText::line_before(std::int64_t position) const {
  if (position <= begin()) return {};
  const Part& part = *parts_[index_of(position - 1)];
  if (const Frame* frame = part.plain ? nullptr : frame_at(part, position - 1)) {
    std::string content = part.content(*frame);
    if (content[static_cast<std::size_t>(position - 1 - frame->begin)] != '\n') return {};
    content.resize(static_cast<std::size_t>(position - 1 - frame->begin));
    return content.substr(content.rfind('\n') + 1);
  }
  std::string text;
  for (std::int64_t wanted = 4096;; wanted *= 8) {
    const std::int64_t from = std::max(position - wanted, part.begin);
    text.resize(static_cast<std::size_t>(position - from));
    const std::int64_t count = read(part, from, text.data(), std::ssize(text));
    // The last newline of the log may be about to be added.
    if (count < std::ssize(text) - 1 || (count == std::ssize(text) && text.back() != '\n')) return {};
    text.pop_back();
    if (from == part.begin || text.find('\n') != std::string::npos)
      return text.substr(text.rfind('\n') + 1);
  }
}

std::int64_t LogText::end_of_lines() const {
  const Part& part = *parts_.back();
  std::string text;
  for (std::int64_t end = this->end(); end > part.begin;) {
    const std::int64_t from = std::max(end - kBytesAtOnce, part.begin);
    text.resize(static_cast<std::size_t>(end - from));
    text.resize(static_cast<std::size_t>(read(part, from, text.data(), std::ssize(text))));
    if (const std::size_t last = text.rfind('\n'); last != std::string::npos)
      return from + static_cast<std::int64_t>(last) + 1;
    end = from;
  }
  return part.begin;
}

void LogText::compress(std::int64_t begin, std::int64_t end, const fs::path& to,
                       const std::function<void()>& pause) const {
  AtomicFile file(to);
  for (std::int64_t position = begin; position < end;) {
    if (pause) pause();
    std::string lines = lines_at(position);
    lines.resize(static_cast<std::size_t>(std::min(std::ssize(lines), end - position)));
    file.write(zstd_frame(lines));
    position += std::ssize(lines);
  }
  file.commit();
}

void LogText::compress(const Segment& segment, const std::function<void()>& pause) const {
  const fs::path to = segment.path.string() + std::string(kCompressed);
  compress(segment.begin, segment.end, to, pause);
  const std::shared_ptr<const Part> part = open_part(to, segment.begin);
  const auto differs = [&] {
    fs::remove(to);
    throw_error<IoError>("{}: The compressed segment differs from what it was made of. It was removed.",
                         to.string());
  };
  if (!part || part->end != segment.end) differs();
  for (const Frame& frame : part->frames) {
    const std::string content = part->content(frame);
    const std::string lines = lines_at(frame.begin, std::ssize(content));
    if (lines.compare(0, content.size(), content) != 0) differs();
  }
  fs::last_write_time(to, fs::last_write_time(segment.path));  // tells how old its records are
  fs::remove(segment.path);
}

std::uint64_t round_of(std::string_view line) {
  constexpr std::string_view kBegin = "{\"round\":";
  std::uint64_t round = 0;
  if (line.starts_with(kBegin))
    std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), round);
  return round;
}

std::unique_ptr<ByteStream> log_stream(std::shared_ptr<const LogText> text) {
  return std::make_unique<LogStream>(std::move(text));
}

}  // namespace olrank
