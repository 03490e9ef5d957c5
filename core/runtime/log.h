#pragma once

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace olrank {

/// With kQuiet only warnings and errors go to stderr, with kVerbose details too. Results never do.
enum class Verbosity { kQuiet, kNormal, kVerbose };
enum class LogLevel { kDetail, kInfo, kWarning };

void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

/// Writes one line without interleaving it with those of other threads.
void log_line(LogLevel level, std::string_view message);

template <class... Args>
void log_detail(fmt::format_string<Args...> format, Args&&... args) {
  if (verbosity() == Verbosity::kVerbose)
    log_line(LogLevel::kDetail, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (verbosity() != Verbosity::kQuiet)
    log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

/// Sends lines to a function instead of stderr; an empty function restores stderr. Returns the previous
/// sink.
using LogSink = std::function<void(LogLevel, std::string_view)>;
LogSink set_log_sink(LogSink sink);

/// Lines on stderr as text, or as one JSON object each.
enum class LogForm { kText, kJson };
void set_log_form(LogForm form);

/// From now on every line also goes to a file, with its time, including those that --quiet keeps from
/// stderr. Appends. Throws IoError if the file cannot be opened.
void open_log_file(const std::filesystem::path& file);
/// Writes a line to that file alone, if there is one.
void log_to_file(std::string_view line);

/// Whether stderr gets warnings and errors only.
bool stderr_is_quiet();

/// The error that ends the program: "olrank: …" on stderr.
void log_error(std::string_view message, int exit_code);

/// While it exists, events and lines go to a function as JSON objects, one a call, instead of stderr; a
/// file still gets the lines. The function is called by any thread, one at a time, and must not log. One at
/// a time.
class EventCapture {
 public:
  explicit EventCapture(std::function<void(std::string_view)> sink);
  ~EventCapture();
  EventCapture(const EventCapture&) = delete;
  EventCapture& operator=(const EventCapture&) = delete;

  static bool active();
};

/// An event for programs: with LogForm::kJson, or captured, an object of time, event and its members;
/// nothing as text.
void log_event(std::string_view event, const nlohmann::ordered_json& members);

/// The last line of a terminal: each call replaces it, and other lines go above it.
void show_status(std::string_view line);
/// Ends the status line, which stays.
void end_status();

/// While it exists, this thread's lines go nowhere: a calibration would repeat those of the run.
class MutedLog {
 public:
  MutedLog();
  ~MutedLog();
  MutedLog(const MutedLog&) = delete;
  MutedLog& operator=(const MutedLog&) = delete;
};

// Times as milliseconds since 1970, UTC.

/// "2026-01-31T23:59:59.123Z"
std::string utc_text(std::int64_t milliseconds);

/// Reads a date and time as RFC 3339 writes them: "2026-01-31T23:59:59.123+01:00". A blank may stand for
/// the T, seconds may lack a fraction, and without an offset the time is UTC. Nothing for any other text.
std::optional<std::int64_t> utc_milliseconds(std::string_view text);

/// Writes results to standard output; throws IoError if that fails, such as on a full disk.
void write_output(std::string_view text);

/// Throws IoError if anything written so far could not be, as a full disk shows only then. Puts a table
/// above the lines that follow on stderr.
void flush_output();

/// The sentence for a failed write; `error_number` is errno's value at the failure.
std::string output_error(int error_number);

}  // namespace olrank
