#include "report/dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "core/runtime/progress.h"
#include "core/text/byte_size.h"

namespace olrank {
namespace {

constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/// A trial's rounds per second, from its summary or else its last evaluation.
double speed_of(const TrialResults& trial) {
  if (trial.finished) return trial.rounds_per_second;
  if (trial.curve.points.empty()) return std::nan("");
  return 1000.0 / trial.curve.points.back().values[Measure::kMilliseconds];
}

DashboardState::Ranker ranker_state(const std::string& name,
                                    const std::vector<const TrialResults*>& trials) {
  DashboardState::Ranker ranker;
  ranker.name = name;
  double speeds = 0.0;
  double known = 0.0;
  std::map<std::int64_t, std::pair<double, double>> curve;  // sums and counts by round
  for (const TrialResults* trial : trials) {
    ranker.finished += trial->finished ? 1 : 0;
    const double speed = speed_of(*trial);
    if (std::isfinite(speed)) {
      speeds += speed;
      ++known;
    }
    for (const CurveEvaluation& point : trial->curve.points) {
      const double height = point.values[Measure::kOfflineNdcg];
      if (!std::isfinite(height)) continue;
      curve[point.round].first += height;
      ++curve[point.round].second;
    }
  }
  ranker.rounds_per_second = known > 0.0 ? speeds / known : std::nan("");
  for (const auto& [round, sum] : curve) ranker.heights.push_back(sum.first / sum.second);
  return ranker;
}

std::string bar(double share, std::size_t width) {
  const auto filled =
      static_cast<std::size_t>(std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  return std::string(filled, '#') + std::string(width - filled, '.');
}

/// The name in ASCII, so that columns equal bytes, cut or padded to `width`.
std::string column_text(const std::string& name, std::size_t width) {
  std::string text;
  for (const char c : name.substr(0, width)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + std::string(width - text.size(), ' ');
}

}  // namespace

DashboardState dashboard_state(const ExperimentResults& experiment) {
  DashboardState state;
  state.name = experiment.folder.lexically_normal().string();
  state.finished = experiment.finished;
  state.expected = experiment.expected;
  state.expected_rounds = experiment.expected * experiment.run.rounds;
  std::map<std::string, std::vector<const TrialResults*>> by_name;
  std::vector<std::string> names;
  for (const RankerDescription& ranker : experiment.run.rankers) names.push_back(ranker.name);
  for (const TrialResults& trial : experiment.trials) {
    const std::string& name = trial.identity.ranker;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    by_name[name].push_back(&trial);
    state.rounds += trial.last_round();
    state.unfinished += trial.finished ? 0 : 1;
    state.peak_memory_bytes = std::max(state.peak_memory_bytes, trial.peak_memory_bytes);
  }
  std::map<std::string, std::int64_t> waiting;
  for (const MissingTrial& trial : experiment.missing) {
    if (trial.round < 0) ++waiting[trial.identity.ranker];
  }
  for (const std::string& name : names) {
    state.rankers.push_back(ranker_state(name, by_name[name]));
    state.rankers.back().trials = std::ssize(by_name[name]) + waiting[name];
  }
  return state;
}

std::string sparkline(const std::vector<double>& heights, double low, double high, std::size_t width) {
  std::string line;
  for (std::size_t i = 0; i < width && !heights.empty(); ++i) {
    const std::size_t place = width < 2 ? heights.size() - 1 : i * (heights.size() - 1) / (width - 1);
    const double share = high > low ? (heights[place] - low) / (high - low) : 0.5;
    line += kBlocks[std::clamp(std::lround(std::floor(share * 8.0)), 0L, 7L)];
  }
  return line;
}

std::string dashboard_text(const DashboardState& state, double rate, int columns) {
  const auto width = static_cast<std::size_t>(std::max(48, columns));
  const double share = state.expected_rounds > 0
                           ? static_cast<double>(state.rounds) / static_cast<double>(state.expected_rounds)
                           : 0.0;
  const auto left = static_cast<double>(state.expected_rounds - state.rounds);
  const double seconds_left = rate > 0.0 ? left / rate : std::nan("");
  std::string text = column_text(state.name, width) + "\n";
  text += fmt::format("[{}] {:3.0f} %\n", bar(share, width - 9), 100.0 * share);
  text += column_text(
              fmt::format("{} of {} trials finished, {} in progress, ETA {}, {} rounds/s", state.finished,
                          state.expected, state.unfinished, readable_duration(seconds_left),
                          rate > 0.0 ? fmt::format("{:.0f}", rate) : "?"),
              width) +
          "\n";
  if (state.peak_memory_bytes > 0)
    text += fmt::format("peak process memory {}\n",
                        readable_bytes(static_cast<double>(state.peak_memory_bytes)));

  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  std::size_t widest = 6;
  for (const DashboardState::Ranker& ranker : state.rankers) {
    widest = std::max(widest, ranker.name.size());
    for (const double height : ranker.heights) {
      low = std::min(low, height);
      high = std::max(high, height);
    }
  }
  const std::size_t name_width = std::min(widest, width - 44);
  const std::size_t spark_width = std::min<std::size_t>(40, width - name_width - 28);
  text += "\n";
  for (const DashboardState::Ranker& ranker : state.rankers) {
    std::string spark = sparkline(ranker.heights, low, high, spark_width);
    if (ranker.heights.empty()) spark = std::string(spark_width, ' ');
    text += fmt::format(
        "{} {:>4}/{:<4} {} {:>6} {:>8}\n", column_text(ranker.name, name_width), ranker.finished,
        ranker.trials, spark,
        ranker.heights.empty() ? std::string("-") : fmt::format("{:.4f}", ranker.heights.back()),
        std::isfinite(ranker.rounds_per_second) ? fmt::format("{:.0f}/s", ranker.rounds_per_second)
                                                : std::string("-"));
  }
  return text;
}

}  // namespace olrank
