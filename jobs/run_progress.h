#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/progress.h"
#include "core/runtime/run_forecast.h"
#include "sim/curve.h"
#include "sim/trial.h"
#include "sim/trial_settings.h"

namespace olrank {

/// Tells how far an experiment is: a bar or lines with the time left, the trial that was evaluated last and
/// its figure, or events for programs. Any thread may call it; the methods of one trial are called by one
/// thread.
class RunProgress {
 public:
  using Clock = std::chrono::steady_clock;

  struct Output {
    ProgressStyle style = ProgressStyle::kSilent;
    int columns = 0;                               // of a bar; 0 asks the terminal, whose size may change
    std::function<void(std::string_view)> status;  // the line of a bar
    std::function<void(std::string_view)> line;    // a plain line
    std::function<Clock::time_point()> now;        // the steady clock unless set
  };
  static Output to_stderr();

  /// `trials` in the order in which they start.
  RunProgress(std::vector<TrialIdentity> trials, std::int64_t rounds, std::int64_t queries, int jobs,
              Output output = to_stderr());
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  /// Whether it shows anything, so that a calibration is worth its time.
  bool shows() const { return output_.style != ProgressStyle::kSilent; }

  void calibrated(const std::string& ranker, const CostShape& shape, double setup);

  /// `setup`: seconds that it took to construct.
  void started(std::size_t trial, std::int64_t rounds_before, double setup);
  /// Rounds of one thread may be reported one by one: most calls only read the clock.
  void played(std::size_t trial, std::int64_t round);
  void evaluated(std::size_t trial, const CurvePoint& point);
  void finished(std::size_t trial, double seconds);
  void finished_before(std::size_t trial);
  void failed(std::size_t trial, std::string_view message);
  /// Ends the display; `signal` stopped the run, 0 for none.
  void end(int signal);

 private:
  struct Running {
    Clock::time_point told{};
    std::int64_t round = 0;
    std::int64_t told_round = 0;
    bool running = false;
  };

  void tell(std::size_t trial, Clock::time_point now);
  void show(Clock::time_point now, bool last);
  double share() const;
  std::string trial_text(std::size_t trial) const;
  std::string bar(double seconds, bool last) const;
  std::string line(double seconds, bool last) const;
  std::string time_text(double seconds, bool last) const;

  std::vector<TrialIdentity> trials_;
  std::int64_t rounds_;
  Output output_;
  std::vector<Running> running_;  // its own thread's, but for `running`
  bool one_user_ = true;
  bool one_fold_ = true;
  bool one_seed_ = true;

  std::vector<std::string> rankers_;  // by number; the forecast fills it

  std::mutex mutex_;
  RunForecast forecast_;
  std::size_t finished_ = 0;
  std::optional<std::size_t> latest_;  // the trial evaluated last
  std::optional<std::size_t> any_;     // the trial started last
  CurvePoint latest_point_;
  Clock::time_point start_;
  Clock::time_point last_shown_;
  Clock::time_point last_line_;
  mutable double share_shown_ = 0.0;
};

/// A calibration says what the first rounds of a trial tell about the cost of all.
struct CostCalibration {
  CostShape shape;  // of its rounds, evaluations included
  double seconds = 0.0;
  std::int64_t rounds = 0;  // played
};

/// Plays a fresh trial in memory for about `seconds`, at most `most_rounds`.
CostCalibration calibrate(Trial& trial, const TrialSettings& settings, std::int64_t queries, double seconds,
                          std::int64_t most_rounds);

}  // namespace olrank
