#pragma once

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

/// "1h02m", "3m07s", "12s"; "?" if unknown.
std::string readable_duration(double seconds);

}  // namespace olrank
