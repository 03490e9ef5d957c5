#include "core/runtime/log.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/runtime/log_output.h"
#include "core/runtime/utc_time.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::atomic<Verbosity> current_verbosity{Verbosity::kNormal};
std::atomic<bool> quiet{false};  // stderr; a log file takes more
std::atomic<LogForm> form{LogForm::kText};
thread_local int muted = 0;

/// Where lines go; the mutex keeps them whole.
std::mutex log_mutex;
std::FILE* log_file = nullptr;
LogSink& sink() {
  static LogSink instance;
  return instance;
}
std::function<void(std::string_view)>& event_sink() {
  static std::function<void(std::string_view)> instance;
  return instance;
}
std::atomic<bool> capturing{false};
std::string& status() {
  static std::string line;
  return line;
}

std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return utc_text(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string_view event_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDetail:
      return "detail";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
  }
  return "info";
}

void write_to_stderr(std::string_view text) {
  std::string all;
  if (!status().empty()) all += "\r\x1b[K";
  all += text;
  all += status();
  std::fwrite(all.data(), 1, all.size(), stderr);
  std::fflush(stderr);
}

void write_event(std::string_view event, const ordered_json& members) {
  ordered_json object = {{"time", time_text()}, {"event", event}};
  object.update(members);
  const std::string line = object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (event_sink()) return event_sink()(line);
  write_to_stderr(line + "\n");
}

void write_to_file(std::string_view prefix, std::string_view message) {
  if (log_file == nullptr) return;
  const std::string line = fmt::format("{} {}{}\n", time_text(), prefix, message);
  std::fwrite(line.data(), 1, line.size(), log_file);
  std::fflush(log_file);
}

}  // namespace

void set_verbosity(Verbosity verbosity) {
  quiet = verbosity == Verbosity::kQuiet;
  current_verbosity =
      verbosity == Verbosity::kQuiet && log_file != nullptr ? Verbosity::kNormal : verbosity;
}
Verbosity verbosity() {
  return current_verbosity;
}
bool stderr_is_quiet() {
  return quiet;
}
void set_log_form(LogForm chosen) {
  form = chosen;
}

void open_log_file(const std::filesystem::path& file) {
  const std::lock_guard lock(log_mutex);
  std::FILE* opened = std::fopen(file.c_str(), "ae");
  if (opened == nullptr) throw IoError("write", file.string(), errno);
  if (log_file != nullptr) std::fclose(log_file);
  log_file = opened;
  if (quiet) current_verbosity = Verbosity::kNormal;
}

LogSink set_log_sink(LogSink replacement) {
  const std::lock_guard lock(log_mutex);
  return std::exchange(sink(), std::move(replacement));
}

void log_line(LogLevel level, std::string_view message) {
  if (muted > 0) return;
  const std::lock_guard lock(log_mutex);
  const std::string_view prefix = level == LogLevel::kWarning ? "warning: " : "";
  write_to_file(prefix, message);
  if (!event_sink()) {
    if (sink()) return sink()(level, message);
    if (quiet && level != LogLevel::kWarning) return;
    if (form != LogForm::kJson) return write_to_stderr(fmt::format("{}{}\n", prefix, message));
  }
  write_event(event_of(level), {{"message", message}});
}

void log_to_file(std::string_view line) {
  const std::lock_guard lock(log_mutex);
  write_to_file("", line);
}

void log_error(std::string_view message, int exit_code) {
  const std::lock_guard lock(log_mutex);
  write_to_file("olrank: ", message);
  if (form == LogForm::kJson) {
    write_event("error", {{"message", message}, {"exit_code", exit_code}});
  } else {
    write_to_stderr(fmt::format("olrank: {}\n", message));
  }
}

EventCapture::EventCapture(std::function<void(std::string_view)> sink) {
  const std::lock_guard lock(log_mutex);
  event_sink() = std::move(sink);
  capturing = true;
}

EventCapture::~EventCapture() {
  const std::lock_guard lock(log_mutex);
  event_sink() = nullptr;
  capturing = false;
}

bool EventCapture::active() {
  return capturing;
}

void log_event(std::string_view event, const ordered_json& members) {
  if (form != LogForm::kJson && !capturing) return;
  const std::lock_guard lock(log_mutex);
  write_event(event, members);
}

void show_status(std::string_view line) {
  const std::lock_guard lock(log_mutex);
  status().clear();
  // Carriage return and erase-to-end, so that a shorter line leaves nothing of a longer one.
  write_to_stderr(fmt::format("\r\x1b[K{}", line));
  status() = line;
}

void end_status() {
  const std::lock_guard lock(log_mutex);
  if (status().empty()) return;
  status().clear();  // so that it is not erased
  write_to_stderr("\n");
}

MutedLog::MutedLog() {
  ++muted;
}
MutedLog::~MutedLog() {
  --muted;
}

}  // namespace olrank
