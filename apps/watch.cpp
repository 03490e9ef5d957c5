#include "apps/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "core/io/standard_output.h"
#include "core/runtime/interrupt.h"
#include "jobs/output_folder.h"
#include "report/dashboard.h"
#include "report/experiment_results.h"

namespace olrank {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

int watch_experiment(const std::filesystem::path& folder, double interval, const OutputFlags& output) {
  const InterruptGuard guard;
  const bool redraws = isatty(STDOUT_FILENO) != 0;
  constexpr int kUnlimited = 100;
  const int columns = output.columns() > 0 ? output.columns() : kUnlimited;
  std::string shown;
  for (;;) {
    // The lock first: a run that ends in between has written all of its files.
    const bool in_use = OutputFolder::in_use(folder);
    const DashboardState state = dashboard_state(read_experiment(folder), in_use);
    const std::string text = dashboard_text(state, columns);
    if (redraws) {
      fmt::print("\x1b[H\x1b[2J{}", text);
    } else if (text != shown) {
      fmt::print("{}\n", text);
    }
    shown = text;
    flush_output();
    if (state.activity == DashboardState::Activity::kFinished) return 0;
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
