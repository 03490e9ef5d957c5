#include "apps/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "core/io/standard_output.h"
#include "core/runtime/interrupt.h"
#include "report/dashboard.h"
#include "report/experiment_results.h"

namespace olrank {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

int watch_experiment(const std::filesystem::path& folder, double interval, const OutputFlags& output) {
  const InterruptGuard guard;
  const bool redraws = isatty(STDOUT_FILENO) != 0;
  const Clock::time_point began = Clock::now();
  std::int64_t rounds_before = -1;
  std::string shown;
  for (;;) {
    const DashboardState state = dashboard_state(read_experiment(folder));
    if (rounds_before < 0) rounds_before = state.rounds;
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    const double rate = seconds > 0.0 ? static_cast<double>(state.rounds - rounds_before) / seconds : 0.0;
    const std::string text = dashboard_text(state, rate, output.columns() > 0 ? output.columns() : 80);
    if (redraws) {
      fmt::print("\x1b[H\x1b[2J{}", text);
    } else if (text != shown) {
      fmt::print("{}\n", text);
    }
    shown = text;
    flush_output();
    if (state.finished >= state.expected) return 0;
    // Short sleeps, so that a signal takes effect at once.
    const Clock::time_point next =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval));
    while (Clock::now() < next) {
      if (InterruptGuard::requested() != 0) return InterruptGuard::requested();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

}  // namespace olrank
