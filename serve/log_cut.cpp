#include "serve/log_cut.h"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/state_archive.h"
#include "logs/log_reader.h"
#include "serve/event_window.h"
#include "serve/file_log.h"
#include "serve/impression_file.h"
#include "serve/own_file.h"
#include "serve/state_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

/// How many rounds the checkpoint has learned; nothing without one.
std::optional<std::uint64_t> checkpoint_round(const fs::path& checkpoint) {
  auto bytes = read_own_file(checkpoint);
  if (!bytes) return std::nullopt;
  StateReader state(std::move(*bytes), checkpoint.string(),
                    "delete this file, and the service learns its log again");
  state.get_text("service.identity");
  return state.get_one<std::uint64_t>("service.round");
}

/// What is between the round of a record's line and its checksum.
std::string_view body_of(std::string_view line) {
  const auto begin = line.find(',');
  return line.substr(begin, line.rfind(",\"check\":") - begin);
}

}  // namespace

LogCut cut_log(const fs::path& state, std::uint64_t to_round, bool dry_run) {
  if (!fs::is_directory(state)) throw IoError("read", state.string(), fs::exists(state) ? ENOTDIR : ENOENT);
  StateFolder folder(state);
  if (!folder.identity()) {
    throw InvalidArgument(fmt::format(
        "{} contains no service: name a folder that was the --state of 'olrank serve'.", state.string()));
  }
  FileLog log(folder.log(), 1, false, FileLog::Access::kWrite, to_round);
  LogCut cut;
  cut.to_round = to_round;
  if (log.survey().rest == LogSurvey::Rest::kLater) {
    cut.records = log.survey().lost_records;
    cut.bytes = log.survey().rest_bytes;
    cut.moved_to = log.next_cut_path();
  }
  if (const auto learned = checkpoint_round(folder.checkpoint()); learned && *learned > to_round) {
    cut.checkpoint_round = learned;
    cut.checkpoint_moved_to = unused_path(folder.checkpoint().string() + ".set-aside");
  }
  if (dry_run) return cut;
  folder.require_lock();
  log.begin_writing();
  if (cut.records > 0) {
    EventWindow::set_journals_aside(state);
    ImpressionFile::set_aside(state);
  }
  if (cut.checkpoint_round) {
    std::error_code failed;
    fs::rename(folder.checkpoint(), cut.checkpoint_moved_to, failed);
    if (failed) throw IoError("rename", folder.checkpoint().string(), failed.value());
  }
  folder.accept();
  return cut;
}

std::uint64_t copy_rounds(const fs::path& log, std::uint64_t from_round,
                          std::optional<std::uint64_t> to_round, const fs::path& copy) {
  LogReader reader(log);
  std::error_code failed;
  if (fs::equivalent(reader.file(), copy, failed))
    throw InvalidArgument(fmt::format("--out {} is the log itself: choose another file.", copy.string()));
  require_outside_state(copy, "--out");
  AtomicFile file(copy);
  FeedbackRecord record;
  std::uint64_t copied = 0;
  while (reader.next(record)) {
    if (record.round < from_round || (to_round && record.round > *to_round)) continue;
    if (!reader.line().starts_with("{\"round\":") || !has_valid_check(reader.line())) {
      throw DataError(reader.file(), reader.number(), 1,
                      "The line is no record of a service with a valid checksum, so it is not copied.");
    }
    file.write(record_line(++copied, body_of(reader.line())));
  }
  if (copied == 0) {
    throw InvalidArgument(fmt::format("{} has no record of a round {}.", reader.file(),
                                      to_round ? fmt::format("from {} to {}", from_round, *to_round)
                                               : fmt::format("from {}", from_round)));
  }
  file.commit();
  return copied;
}

}  // namespace olrank
