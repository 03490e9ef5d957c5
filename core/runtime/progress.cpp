#include "core/runtime/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "core/runtime/log.h"

namespace olrank {
namespace {

std::optional<ProgressStyle>& chosen_style() {
  static std::optional<ProgressStyle> style;
  return style;
}

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

std::size_t StageClock::index_of(std::string_view stage) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].name == stage) return i;
  }
  stages_.push_back({std::string(stage), 0.0});
  return stages_.size() - 1;
}

double StageClock::seconds(std::string_view stage) const {
  for (const Stage& known : stages_) {
    if (known.name == stage) return known.seconds;
  }
  return 0.0;
}

double StageClock::total() const {
  double sum = 0.0;
  for (const Stage& stage : stages_) sum += stage.seconds;
  return sum;
}

void set_progress_style(ProgressStyle style) {
  chosen_style() = style;
}

ProgressStyle progress_style() {
  if (EventCapture::active()) return ProgressStyle::kJson;
  if (chosen_style()) return *chosen_style();
  if (stderr_is_quiet()) return ProgressStyle::kSilent;
  const char* terminal = std::getenv("TERM");
  const bool moves_cursor = terminal != nullptr && std::string_view(terminal) != "dumb";
  return isatty(STDERR_FILENO) != 0 && moves_cursor ? ProgressStyle::kBar : ProgressStyle::kLines;
}

void ProgressLine::show(const std::string& line, double seconds, bool last) {
  constexpr double kSecondsBetweenLines = 5.0;
  if (style_ == ProgressStyle::kBar) {
    show_status(line);
    if (last) end_status();
  } else if (style_ == ProgressStyle::kLines) {
    if (!last && told_ && seconds - *told_ < kSecondsBetweenLines) return;
    told_ = seconds;
    log_info("{}", line);
  }
}

std::string readable_duration(double seconds) {
  if (!(seconds >= 0.0) || !std::isfinite(seconds)) return "?";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}s", whole);
}

int terminal_columns(int descriptor) {
  constexpr int kUsual = 80;
  constexpr int kMost = 100'000;
  const bool terminal = isatty(descriptor) != 0;
  winsize size{};
  if (terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* given = std::getenv("COLUMNS"); given != nullptr) {
    const std::string_view text(given);
    int columns = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc{} && rest == text.data() + text.size() && columns > 0 && columns <= kMost)
      return columns;
  }
  return terminal ? kUsual : 0;
}

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
