#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// Seconds by named stage, on the monotonic clock. Stages appear in the order of their first use.
class StageClock {
 public:
  struct Stage {
    std::string name;
    double seconds = 0.0;
  };

  /// Measures its own lifetime.
  class Scope {
   public:
    Scope(StageClock& clock, std::size_t stage)
        : clock_(clock), stage_(stage), start_(std::chrono::steady_clock::now()) {}
    ~Scope() {
      clock_.stages_[stage_].seconds +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    StageClock& clock_;
    std::size_t stage_;
    std::chrono::steady_clock::time_point start_;
  };

  [[nodiscard]] Scope measure(std::string_view stage) { return Scope(*this, index_of(stage)); }
  void add(std::string_view stage, double seconds) { stages_[index_of(stage)].seconds += seconds; }

  double seconds(std::string_view stage) const;  // 0 for a stage never measured
  double total() const;
  const std::vector<Stage>& stages() const { return stages_; }

 private:
  std::size_t index_of(std::string_view stage);

  std::vector<Stage> stages_;
};

/// Seconds on the clock since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun_ = Clock::now();
};

/// How progress is shown: a bar that redraws itself on a terminal, plain lines in a file or pipe, one JSON
/// object for each event, or not at all.
enum class ProgressStyle { kBar, kLines, kJson, kSilent };

/// Chooses a style in place of the one that fits stderr.
void set_progress_style(ProgressStyle style);

/// kJson while events are captured, then the chosen style, or else: kSilent when the log is quiet, kBar
/// when stderr is a terminal that can move its cursor, kLines.
ProgressStyle progress_style();

/// The line that says how far a piece of work is, in a style: it redraws itself on a terminal, and in a
/// file comes every five seconds.
class ProgressLine {
 public:
  /// Whether programs read events in its place.
  bool as_events() const { return style_ == ProgressStyle::kJson; }
  /// `seconds` since the work began; the last line is always shown.
  void show(const std::string& line, double seconds, bool last);

 private:
  ProgressStyle style_ = progress_style();
  std::optional<double> told_;
};

/// "1h02m", "3m07s", "12s"; "?" if unknown.
std::string readable_duration(double seconds);

/// The columns of the terminal behind a file descriptor. For anything else, such as a file or a pipe, the
/// environment's COLUMNS, and 0, no limit, without it.
int terminal_columns(int descriptor);

/// While a guard exists, SIGINT, SIGTERM and SIGHUP (unless ignored) only set requested(): the loop reads
/// it between rounds, finishes the round, saves a checkpoint and ends. A second signal ends the process at
/// once. The destructor restores the earlier handlers.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The first signal received, or 0.
  static int requested() noexcept;
  /// The exit code after `signal`: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
  static int exit_code(int signal) noexcept { return 128 + signal; }
};

}  // namespace olrank
