#include "core/runtime/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/runtime/log.h"

namespace olrank {
namespace {

constexpr double kBarInterval = 0.2;  // five times a second

int terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string readable_rate(double rate) {
  if (rate >= 100.0) return fmt::format("{:.0f}", rate);
  return fmt::format("{:.3g}", rate);
}

}  // namespace

ProgressStyle progress_style_of_stderr() {
  if (verbosity() == Verbosity::kQuiet) return ProgressStyle::kSilent;
  const char* terminal = std::getenv("TERM");
  const bool moves_cursor = terminal != nullptr && std::string_view(terminal) != "dumb";
  return isatty(STDERR_FILENO) != 0 && moves_cursor ? ProgressStyle::kBar : ProgressStyle::kLines;
}

std::string readable_duration(double seconds) {
  if (!(seconds >= 0.0) || !std::isfinite(seconds)) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

Progress::Output Progress::to_stderr() {
  return Output{.style = progress_style_of_stderr(), .columns = terminal_columns(), .write = {}, .now = {}};
}

Progress::Progress(std::string label, std::int64_t total, std::string unit, Output output)
    : label_(std::move(label)), total_(total), unit_(std::move(unit)), output_(std::move(output)) {
  if (!output_.write) {
    output_.write = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stderr);
      std::fflush(stderr);
    };
  }
  if (!output_.now) output_.now = [] { return std::chrono::steady_clock::now(); };
  start_ = output_.now();
  last_shown_ = start_;
}

Progress::~Progress() {
  finish();
}

void Progress::advance(std::int64_t amount) {
  const std::lock_guard lock(mutex_);
  done_ += amount;
  if (output_.style == ProgressStyle::kSilent) return;
  const auto now = output_.now();
  const double since_shown = std::chrono::duration<double>(now - last_shown_).count();
  const double interval = output_.style == ProgressStyle::kBar ? kBarInterval : output_.line_interval;
  if (since_shown >= interval) show(now, false);
}

void Progress::already_done(std::int64_t amount) {
  const std::lock_guard lock(mutex_);
  done_ += amount;
  done_before_ += amount;
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(finished_, true) || output_.style == ProgressStyle::kSilent) return;
  show(output_.now(), true);
}

void Progress::show(std::chrono::steady_clock::time_point now, bool last) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (output_.style == ProgressStyle::kBar) {
    // Carriage return and erase-to-end, so that a shorter bar leaves nothing of a longer one.
    output_.write(fmt::format("\r{}\x1b[K{}", bar(seconds), last ? "\n" : ""));
  } else {
    output_.write(line(seconds) + "\n");
  }
  last_shown_ = now;
}

std::string Progress::rate_and_time_left(double seconds) const {
  const auto measured = static_cast<double>(done_ - done_before_);
  if (measured <= 0.0 || seconds <= 0.0) return fmt::format("{} elapsed", readable_duration(seconds));
  const double rate = measured / seconds;
  if (done_ >= total_)
    return fmt::format("{} {}/s, took {}", readable_rate(rate), unit_, readable_duration(seconds));
  const double left = static_cast<double>(total_ - done_) / rate;
  return fmt::format("{} {}/s, {} left", readable_rate(rate), unit_, readable_duration(left));
}

std::string Progress::line(double seconds) const {
  const double percent =
      total_ > 0 ? 100.0 * static_cast<double>(done_) / static_cast<double>(total_) : 100.0;
  return fmt::format("{}: {}/{} {} ({:.0f}%), {}", label_, done_, total_, unit_, percent,
                     rate_and_time_left(seconds));
}

std::string Progress::bar(double seconds) const {
  const double share =
      total_ > 0 ? std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0.0, 1.0) : 1.0;
  const std::string tail = fmt::format(" {:3.0f}% {}", 100.0 * share, rate_and_time_left(seconds));
  const int room = output_.columns - 1 - static_cast<int>(label_.size() + tail.size()) - 3;
  if (room < 5) {  // narrow terminals lose the bar first, then the end of the text
    return (label_ + tail).substr(0, std::max(output_.columns - 1, 0));
  }
  const int width = std::min(room, 40);
  const int filled = static_cast<int>(share * width);
  return fmt::format("{} [{}{}]{}", label_, std::string(filled, '#'), std::string(width - filled, '-'),
                     tail);
}

}  // namespace olrank
