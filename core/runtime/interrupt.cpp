#include "core/runtime/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>

namespace olrank {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "the handler may only touch lock-free state");
std::array<struct sigaction, kSignals.size()> earlier{};

extern "C" void olrank_note_signal(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  // The next signal gets the default action.
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = olrank_note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &earlier[i]);
    // nohup ignores SIGHUP for the program that it starts.
    if (kSignals[i] == SIGHUP && earlier[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &earlier[i], nullptr);
}

int InterruptGuard::requested() noexcept {
  return first_signal;
}

}  // namespace olrank
