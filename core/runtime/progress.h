#pragma once

#include <optional>
#include <string>

namespace olrank {

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

}  // namespace olrank
