#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace olrank {

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

}  // namespace olrank
