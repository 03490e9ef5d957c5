#pragma once

namespace olrank {

/// While one is alive, SIGINT and SIGTERM ask instead of kill: the loop looks at requested() between
/// rounds, finishes the round, checkpoints and ends. A second signal ends the process at once, for whoever
/// cannot wait. Signals before and after behave as they did.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal that came first, 0 when none has.
  static int requested() noexcept;
  /// What the process ends with after `signal`: 130 for SIGINT, 143 for SIGTERM.
  static int exit_code(int signal) noexcept { return 128 + signal; }
};

}  // namespace olrank
