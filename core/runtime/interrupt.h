#pragma once

namespace olrank {

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
