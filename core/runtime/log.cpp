#include "core/runtime/log.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/error.h"

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
  return level == LogLevel::kDetail ? "detail" : level == LogLevel::kInfo ? "info" : "warning";
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

/// Takes a text from its beginning to its end; once something is missing, so is the rest.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(text) {}

  bool ended() const { return valid_ && rest_.empty(); }
  bool begins_with(std::string_view any) const {
    return !rest_.empty() && any.find(rest_.front()) != std::string_view::npos;
  }
  char take(std::string_view any) {
    if (!begins_with(any)) {
      valid_ = false;
      return '\0';
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  int take_number(int digits) {
    int number = 0;
    for (int digit = 0; digit < digits; ++digit) {
      const char c = take(kDigits);
      if (c != '\0') number = 10 * number + (c - '0');
    }
    return number;
  }
  int take_number(int digits, int most) {
    const int number = take_number(digits);
    valid_ = valid_ && number <= most;
    return number;
  }
  /// The first three digits of a fraction of any length.
  int take_thousandths() {
    int number = take_number(1) * 100;
    for (int unit = 10; begins_with(kDigits); unit /= 10) number += unit * take_number(1);
    return number;
  }

 private:
  static constexpr std::string_view kDigits = "0123456789";

  std::string_view rest_;
  bool valid_ = true;
};

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

std::string utc_text(std::int64_t milliseconds) {
  std::int64_t thousandths = milliseconds % 1000;
  if (thousandths < 0) thousandths += 1000;
  const auto seconds = static_cast<std::time_t>((milliseconds - thousandths) / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, thousandths);
}

std::optional<std::int64_t> utc_milliseconds(std::string_view text) {
  using namespace std::chrono;
  TimeText rest(text);
  const year_month_day date = [&rest] {
    const year y{rest.take_number(4)};
    rest.take("-");
    const month m{static_cast<unsigned>(rest.take_number(2))};
    rest.take("-");
    return y / m / day{static_cast<unsigned>(rest.take_number(2))};
  }();
  rest.take("Tt ");
  std::int64_t seconds = 3600 * rest.take_number(2, 23);
  rest.take(":");
  seconds += 60 * rest.take_number(2, 59);
  rest.take(":");
  seconds += rest.take_number(2, 60);  // a leap second counts as the next one
  std::int64_t thousandths = 0;
  if (rest.begins_with(".,")) {
    rest.take(".,");
    thousandths = rest.take_thousandths();
  }
  if (rest.begins_with("Zz")) {
    rest.take("Zz");
  } else if (rest.begins_with("+-")) {
    const int sign = rest.take("+-") == '+' ? -1 : 1;
    seconds += sign * 3600 * rest.take_number(2, 23);
    if (rest.begins_with(":")) rest.take(":");
    seconds += sign * 60 * rest.take_number(2, 59);
  }
  if (!rest.ended() || !date.ok()) return std::nullopt;
  seconds += 86400 * std::int64_t{sys_days(date).time_since_epoch().count()};
  return 1000 * seconds + thousandths;
}

std::string output_error(int error_number) {
  return fmt::format("Cannot write to standard output: {}.", std::generic_category().message(error_number));
}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw IoError(output_error(errno));
}

void flush_output() {
  if (std::fflush(stdout) != 0) throw IoError(output_error(errno));
  if (std::ferror(stdout) != 0) throw IoError(output_error(EIO));
}

}  // namespace olrank
