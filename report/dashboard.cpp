#include "report/dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/runtime/progress.h"
#include "core/runtime/run_forecast.h"
#include "core/text/message_text.h"
#include "core/text/text_table.h"

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

/// Names in ASCII: what comes from files must not move a terminal's cursor.
std::string clean(const std::string& name) {
  std::string text;
  for (const char c : name) text += c >= ' ' && c <= '~' ? c : '?';
  return text;
}

std::string bar(double share, std::int64_t width) {
  const auto filled = std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return std::string(filled, '#') + std::string(width - filled, '.');
}

/// Forecasts the rest from the trials so far, in the order in which a run plays them.
RunForecast forecast_of(const ExperimentResults& experiment, std::int64_t jobs) {
  std::map<TrialIdentity, const TrialResults*> trials;
  for (const MissingTrial& missing : experiment.missing) trials[missing.identity] = nullptr;
  for (const TrialResults& trial : experiment.trials) trials[trial.identity] = &trial;
  std::map<std::string, std::size_t> numbers;
  std::vector<std::size_t> rankers;
  rankers.reserve(trials.size());
  for (const auto& [identity, trial] : trials)
    rankers.push_back(numbers.emplace(identity.ranker, numbers.size()).first->second);
  constexpr std::int64_t kNoReturningQueries = 1'000'000'000;
  RunForecast forecast(rankers, experiment.run.rounds, kNoReturningQueries, static_cast<int>(jobs));
  std::size_t number = 0;
  for (const auto& [identity, trial] : trials) {
    const std::size_t own = number++;
    if (trial == nullptr || trial->curve.points.empty()) continue;
    forecast.start(own, 0, 0.0);
    std::int64_t before = 0;
    for (const CurveEvaluation& point : trial->curve.points) {
      const double each = point.values[Measure::kMilliseconds] / 1000.0;
      if (std::isfinite(each))
        forecast.play(own, point.round, each * static_cast<double>(point.round - before));
      before = point.round;
    }
    if (trial->finished) forecast.finish(own);
  }
  return forecast;
}

std::string activity_text(const DashboardState& state) {
  std::string trials = fmt::format("{} of {} trials finished", state.finished, state.expected);
  switch (state.activity) {
    case DashboardState::Activity::kRunning:
      return fmt::format("running, {}, {} in progress", trials, state.unfinished);
    case DashboardState::Activity::kStopped:
      return fmt::format("stopped, {}, {} begun; no process writes to this folder, --resume continues",
                         trials, state.unfinished);
    case DashboardState::Activity::kFinished:
      break;
  }
  return trials;
}

std::string user_text(const DashboardState& state, const DashboardState::User& user, int columns) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const DashboardState::Ranker& ranker : user.rankers) {
    for (const double height : ranker.heights) {
      low = std::min(low, height);
      high = std::max(high, height);
    }
  }
  std::string text = "\n" + clean(user.name);
  if (low <= high)
    text += fmt::format(": offline NDCG@{} from {:.4f} (▁) to {:.4f} (█)", state.cutoff, low, high);
  const std::string curve = fmt::format("rounds 0 to {}", state.rounds);
  TextTable table({{.header = "ranker", .is_name = true},
                   {.header = "trials"},
                   {.header = curve, .is_name = true, .dropped = 2},
                   {.header = "latest"},
                   {.header = "rounds/s", .dropped = 1}});
  const std::size_t spark_width = std::clamp(columns / 4, 16, 40);
  for (const DashboardState::Ranker& ranker : user.rankers) {
    table.add(
        {clean(ranker.name), fmt::format("{}/{}", ranker.finished, ranker.trials),
         sparkline(ranker.heights, low, high, spark_width),
         ranker.heights.empty() ? "-" : fmt::format("{:.4f}", ranker.heights.back()),
         std::isfinite(ranker.rounds_per_second) ? fmt::format("{:.0f}", ranker.rounds_per_second) : "-"});
  }
  return wrapped(text, columns, 2) + "\n" + table.fitted(columns).text;
}

}  // namespace

DashboardState dashboard_state(const ExperimentResults& experiment, bool in_use) {
  DashboardState state;
  state.name = experiment.folder.lexically_normal().string();
  state.finished = experiment.finished;
  state.expected = experiment.expected;
  state.rounds = experiment.run.rounds;
  std::vector<std::string> rankers;
  for (const RankerDescription& ranker : experiment.run.rankers) rankers.push_back(ranker.name);
  std::vector<std::string> users = experiment.run.users;
  const auto add_new = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  std::map<std::pair<std::string, std::string>, std::vector<const TrialResults*>> started;
  for (const TrialResults& trial : experiment.trials) {
    add_new(rankers, trial.identity.ranker);
    add_new(users, trial.identity.user);
    started[{trial.identity.user, trial.identity.ranker}].push_back(&trial);
    state.unfinished += trial.finished ? 0 : 1;
    state.peak_memory_bytes = std::max(state.peak_memory_bytes, trial.peak_memory_bytes);
    state.cutoff = std::max({state.cutoff, trial.cutoff, trial.curve.cutoff});
  }
  std::map<std::pair<std::string, std::string>, std::int64_t> waiting;
  for (const MissingTrial& trial : experiment.missing) {
    add_new(users, trial.identity.user);
    if (trial.round < 0) ++waiting[{trial.identity.user, trial.identity.ranker}];
  }
  for (const std::string& user : users) {
    state.users.push_back({user, {}});
    for (const std::string& ranker : rankers) {
      const std::int64_t trials = std::ssize(started[{user, ranker}]) + waiting[{user, ranker}];
      if (trials == 0) continue;
      state.users.back().rankers.push_back(ranker_state(ranker, started[{user, ranker}]));
      state.users.back().rankers.back().trials = trials;
    }
  }
  const RunForecast forecast = forecast_of(experiment, std::max<std::int64_t>(1, state.unfinished));
  state.share = forecast.share_done();
  if (state.finished >= state.expected) {
    state.activity = DashboardState::Activity::kFinished;
    state.share = 1.0;
  } else if (in_use) {
    state.seconds_left = forecast.seconds_left();
  } else {
    state.activity = DashboardState::Activity::kStopped;
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

std::string dashboard_text(const DashboardState& state, int columns) {
  columns = std::max(48, columns);
  std::string text =
      wrapped(fmt::format("{}: {}", clean(state.name), activity_text(state)), columns, 2) + "\n";
  std::string left;
  if (state.activity == DashboardState::Activity::kRunning) {
    left = state.seconds_left ? fmt::format(", {} left", readable_duration(*state.seconds_left))
                              : ", time left unknown";
  }
  const std::string tail = fmt::format(" {:.0f} %{}", std::floor(100.0 * state.share), left);
  text += fmt::format("[{}]{}\n",
                      bar(state.share, std::min<std::int64_t>(columns, 100) - 2 - columns_of(tail)), tail);
  if (state.peak_memory_bytes > 0)
    text += fmt::format("peak process memory {}\n",
                        readable_bytes(static_cast<double>(state.peak_memory_bytes)));
  for (const DashboardState::User& user : state.users) text += user_text(state, user, columns);
  return text;
}

}  // namespace olrank
