#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace olrank {

/// How progress is shown: a bar that redraws itself on a terminal, plain lines in a file or pipe, or not at
/// all.
enum class ProgressStyle { kBar, kLines, kSilent };

/// kSilent when the log is quiet, kBar when stderr is a terminal that can move its cursor, else kLines.
ProgressStyle progress_style_of_stderr();

/// "1h02m", "3m07s", "12s"; "?" if unknown.
std::string readable_duration(double seconds);

/// Shows how much of a known amount of work is done, with rate and time left: a bar at most five times a
/// second, lines every few seconds, and both once more at the end. Any thread may advance it.
class Progress {
 public:
  struct Output {
    ProgressStyle style = ProgressStyle::kSilent;
    int columns = 80;
    std::function<void(std::string_view)> write;                 // stderr unless set
    std::function<std::chrono::steady_clock::time_point()> now;  // the steady clock unless set
    double line_interval = 5.0;                                  // seconds between plain lines
  };
  static Output to_stderr();

  /// `unit` in the plural: "rounds".
  Progress(std::string label, std::int64_t total, std::string unit, Output output = to_stderr());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::int64_t amount = 1);
  /// Work that was done before, such as the trials of a resumed run: it counts as done, but not towards the
  /// rate.
  void already_done(std::int64_t amount);
  void finish();

 private:
  void show(std::chrono::steady_clock::time_point now, bool last);
  std::string bar(double seconds) const;
  std::string line(double seconds) const;
  std::string rate_and_time_left(double seconds) const;

  std::mutex mutex_;
  std::string label_;
  std::int64_t total_;
  std::string unit_;
  Output output_;
  std::int64_t done_ = 0;
  std::int64_t done_before_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_shown_;
  bool finished_ = false;
};

}  // namespace olrank
