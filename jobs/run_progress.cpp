#include "jobs/run_progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/text/text_table.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

constexpr double kBarInterval = 0.2;   // seconds
constexpr double kLineInterval = 5.0;  // of lines and events, at first
constexpr double kLongestInterval = 60.0;
constexpr double kTellInterval = 0.005;  // between two measurements of a trial

double seconds_between(RunProgress::Clock::time_point from, RunProgress::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

std::vector<std::size_t> numbers_of(const std::vector<TrialIdentity>& trials,
                                    std::vector<std::string>& names) {
  std::vector<std::size_t> numbers;
  for (const TrialIdentity& trial : trials) {
    const auto found = std::find(names.begin(), names.end(), trial.ranker);
    numbers.push_back(static_cast<std::size_t>(found - names.begin()));
    if (found == names.end()) names.push_back(trial.ranker);
  }
  return numbers;
}

ordered_json trial_json(const TrialIdentity& trial) {
  return {{"ranker", trial.ranker}, {"clicks", trial.user}, {"fold", trial.fold}, {"seed", trial.seed}};
}

ordered_json figures_json(const CurvePoint& point) {
  const std::string figure = fmt::format("ndcg@{}", point.cutoff);
  ordered_json json = {{"offline", {{figure, number_or_null(point.offline_ndcg)}}},
                       {"online",
                        {{figure, number_or_null(point.online_ndcg)},
                         {"c" + figure, number_or_null(point.discounted_ndcg)}}}};
  for (const CurveMetric& metric : point.metrics)
    json["metrics"][metric.name] = number_or_null(metric.value);
  return json;
}

/// The first rounds allocate what later ones reuse.
constexpr std::int64_t kWarmUp = 2;

}  // namespace

RunProgress::Output RunProgress::to_stderr() {
  return {.style = progress_style(), .columns = 0, .status = {}, .line = {}, .now = {}};
}

RunProgress::RunProgress(std::vector<TrialIdentity> trials, std::int64_t rounds, std::int64_t queries,
                         int jobs, Output output)
    : trials_(std::move(trials)),
      rounds_(rounds),
      output_(std::move(output)),
      running_(trials_.size()),
      forecast_(numbers_of(trials_, rankers_), rounds, queries, jobs) {
  for (const TrialIdentity& trial : trials_) {
    one_user_ = one_user_ && trial.user == trials_.front().user;
    one_fold_ = one_fold_ && trial.fold == trials_.front().fold;
    one_seed_ = one_seed_ && trial.seed == trials_.front().seed;
  }
  if (!output_.status) output_.status = show_status;
  if (!output_.line) output_.line = [](std::string_view line) { log_line(LogLevel::kInfo, line); };
  if (!output_.now) output_.now = [] { return Clock::now(); };
  start_ = output_.now();
  last_shown_ = start_;
  last_line_ = start_;
  log_event("experiment_started",
            {{"trials", trials_.size()}, {"rounds", rounds_}, {"jobs", jobs}, {"rankers", rankers_}});
}

void RunProgress::calibrated(const std::string& ranker, const CostShape& shape, double setup) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(rankers_.begin(), rankers_.end(), ranker);
  if (found != rankers_.end())
    forecast_.calibrate(static_cast<std::size_t>(found - rankers_.begin()), shape, setup);
}

void RunProgress::started(std::size_t trial, std::int64_t rounds_before, double setup) {
  log_event("trial_started", {{"trial", trial_json(trials_[trial])}, {"round", rounds_before}});
  const std::lock_guard lock(mutex_);
  forecast_.start(trial, rounds_before, setup);
  running_[trial] = {output_.now(), rounds_before, rounds_before, true};
  any_ = trial;
}

void RunProgress::played(std::size_t trial, std::int64_t round) {
  if (!shows()) return;
  Running& own = running_[trial];
  own.round = round;
  const Clock::time_point now = output_.now();
  if (seconds_between(own.told, now) < kTellInterval) return;
  const std::lock_guard lock(mutex_);
  tell(trial, now);
  const double since_shown = seconds_between(last_shown_, now);
  const double interval =
      output_.style == ProgressStyle::kBar
          ? kBarInterval
          : std::clamp(seconds_between(start_, now) / 20.0, kLineInterval, kLongestInterval);
  if (since_shown >= interval) show(now, false);
}

void RunProgress::tell(std::size_t trial, Clock::time_point now) {
  Running& own = running_[trial];
  if (own.round > own.told_round) forecast_.play(trial, own.round, seconds_between(own.told, now));
  own.told_round = own.round;
  own.told = now;
}

void RunProgress::evaluated(std::size_t trial, const CurvePoint& point) {
  if (!shows()) return;
  ordered_json event = {{"trial", trial_json(trials_[trial])}, {"round", point.round}};
  event.update(figures_json(point));
  log_event("evaluation", event);
  const std::lock_guard lock(mutex_);
  latest_ = trial;
  latest_point_ = point;
}

void RunProgress::finished(std::size_t trial, double seconds) {
  log_event("trial_finished", {{"trial", trial_json(trials_[trial])}, {"seconds", seconds}});
  const std::lock_guard lock(mutex_);
  tell(trial, output_.now());
  running_[trial].running = false;
  forecast_.finish(trial);
  ++finished_;
}

void RunProgress::finished_before(std::size_t trial) {
  log_event("trial_skipped", {{"trial", trial_json(trials_[trial])}, {"reason", "finished before"}});
  const std::lock_guard lock(mutex_);
  forecast_.finish(trial);
  ++finished_;
}

void RunProgress::failed(std::size_t trial, std::string_view message) {
  log_event("trial_failed", {{"trial", trial_json(trials_[trial])}, {"message", message}});
  const std::lock_guard lock(mutex_);
  running_[trial].running = false;
  forecast_.finish(trial);
}

void RunProgress::end(int signal) {
  const Clock::time_point now = output_.now();
  const double seconds = seconds_between(start_, now);
  if (signal != 0) {
    log_event("stopped", {{"signal", signal}, {"seconds", seconds}});
  } else {
    log_event("finished",
              {{"trials", {{"finished", finished_}, {"total", trials_.size()}}}, {"seconds", seconds}});
  }
  const std::lock_guard lock(mutex_);
  if (output_.style == ProgressStyle::kBar || output_.style == ProgressStyle::kLines) show(now, true);
  if (output_.style == ProgressStyle::kBar) end_status();
}

/// Never less than what was shown before.
double RunProgress::share() const {
  share_shown_ = std::max(share_shown_, std::min(1.0, forecast_.share_done()));
  return finished_ == trials_.size() ? 1.0 : share_shown_;
}

void RunProgress::show(Clock::time_point now, bool last) {
  const double seconds = seconds_between(start_, now);
  last_shown_ = now;
  if (output_.style == ProgressStyle::kBar) {
    output_.status(bar(seconds, last));
    const double since_line = seconds_between(last_line_, now);
    if (!last && since_line < std::clamp(seconds / 20.0, kLineInterval, kLongestInterval)) return;
    last_line_ = now;
    log_to_file(line(seconds, last));
    return;
  }
  if (output_.style == ProgressStyle::kLines) output_.line(line(seconds, last));
  if (output_.style != ProgressStyle::kJson) return;
  auto running = ordered_json::array();
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    if (!running_[trial].running) continue;
    running.push_back({{"trial", trial_json(trials_[trial])}, {"round", running_[trial].told_round}});
  }
  const auto left = forecast_.seconds_left();
  log_event("progress", {{"trials", {{"finished", finished_}, {"total", trials_.size()}}},
                         {"share", share()},
                         {"seconds", seconds},
                         {"seconds_left", left ? ordered_json(*left) : ordered_json(nullptr)},
                         {"running", running}});
}

/// "olranknet-full, perfect, fold 1, seed 2" without what all trials have in common.
std::string RunProgress::trial_text(std::size_t trial) const {
  const TrialIdentity& identity = trials_[trial];
  std::vector<std::string> parts;
  if (rankers_.size() > 1 || trials_.size() == 1) parts.push_back(identity.ranker);
  if (!one_user_) parts.push_back(identity.user);
  if (!one_fold_) parts.push_back(fmt::format("fold {}", identity.fold));
  if (!one_seed_) parts.push_back(fmt::format("seed {}", identity.seed));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string RunProgress::time_text(double seconds, bool last) const {
  if (last) return fmt::format("took {}", readable_duration(seconds));
  const auto left = forecast_.seconds_left();
  return left ? fmt::format("{} left", readable_duration(*left)) : std::string("time left unknown");
}

std::string RunProgress::line(double seconds, bool last) const {
  std::string text = fmt::format("{:.0f}%, {} of {} trials finished, {}", std::floor(100.0 * share()),
                                 finished_, trials_.size(), time_text(seconds, last));
  if (latest_ && !last) {
    text += fmt::format("; {}, round {} of {}: ndcg@{} {:.4f}", trial_text(*latest_), latest_point_.round,
                        rounds_, latest_point_.cutoff, latest_point_.offline_ndcg);
  } else if (any_ && !last) {
    text += fmt::format("; {}", trial_text(*any_));
  }
  return text;
}

std::string RunProgress::bar(double seconds, bool last) const {
  constexpr int kUsual = 80;
  const int own = output_.columns > 0 ? output_.columns : terminal_columns(STDERR_FILENO);
  const std::int64_t columns = (own > 0 ? own : kUsual) - 1;
  const double done = share();
  const std::string summary = fmt::format(" {:.0f}% {}/{} trials, {}", std::floor(100.0 * done), finished_,
                                          trials_.size(), time_text(seconds, last));
  const std::string figure = latest_ && !last
                                 ? fmt::format(", round {}: ndcg@{} {:.4f}", latest_point_.round,
                                               latest_point_.cutoff, latest_point_.offline_ndcg)
                                 : "";
  const std::string name = last ? "" : latest_ ? trial_text(*latest_) : any_ ? trial_text(*any_) : "";
  constexpr std::int64_t kShortestName = 12;
  // As wide as the terminal alone decides, so that it does not jump.
  const std::int64_t width = std::clamp<std::int64_t>((columns - 60) / 2, 8, 30);
  const std::int64_t room = columns - columns_of(summary) - width - 2;
  // Narrow terminals lose the figure first, then the trial, then the bar, then the end of the text.
  if (room < 0) return shortened(summary.substr(1), columns);
  std::string trial;
  for (const std::string& shown : {figure, std::string()}) {
    const std::int64_t for_name = room - 2 - columns_of(shown);
    if (name.empty() || for_name < std::min(kShortestName, columns_of(name))) continue;
    trial = "  " + shortened(name, for_name) + shown;
    break;
  }
  const auto filled = static_cast<std::int64_t>(done * static_cast<double>(width));
  return fmt::format("[{}{}]{}{}", std::string(filled, '#'), std::string(width - filled, '-'), summary,
                     trial);
}

CostCalibration calibrate(Trial& trial, const TrialSettings& settings, std::int64_t queries, double seconds,
                          std::int64_t most_rounds) {
  CostCalibration calibration;
  StageSeconds stages;
  double evaluating = 0.0;
  std::int64_t evaluations = 0;
  std::map<std::string, double> before;
  const Stopwatch start;
  while (!trial.finished() && calibration.rounds < most_rounds && calibration.seconds < seconds) {
    if (trial.evaluation_due()) {
      const Stopwatch begun;
      trial.evaluate();
      evaluating += begun.seconds();
      ++evaluations;
      for (const StageClock::Stage& stage : trial.clock().stages()) before[stage.name] = stage.seconds;
    }
    const Stopwatch begun;
    trial.play_round();
    const double whole = begun.seconds();
    ++calibration.rounds;
    double in_stages = 0.0;
    for (const StageClock::Stage& stage : trial.clock().stages()) {
      const double spent = stage.seconds - std::exchange(before[stage.name], stage.seconds);
      in_stages += spent;
      if (calibration.rounds > kWarmUp)
        stages[stage.name].push_back({static_cast<double>(calibration.rounds), spent});
    }
    if (calibration.rounds > kWarmUp)
      stages["other"].push_back(
          {static_cast<double>(calibration.rounds), std::max(0.0, whole - in_stages)});
    calibration.seconds = start.seconds();
  }
  const double covered = static_cast<double>(calibration.rounds) /
                         static_cast<double>(std::max<std::int64_t>(1, settings.rounds));
  calibration.shape = shape_of_stages(stages, queries, covered);
  if (calibration.rounds > 0 && calibration.rounds <= kWarmUp) {
    const double each = (calibration.seconds - evaluating) / static_cast<double>(calibration.rounds);
    calibration.shape += CostShape(std::vector<RoundSeconds>{{1.0, each}}, queries, covered);
  }
  if (evaluations > 0) {
    const double each = evaluating / static_cast<double>(evaluations * settings.eval_every);
    calibration.shape += CostShape(std::vector<RoundSeconds>{{1.0, each}}, queries, covered);
  }
  return calibration;
}

}  // namespace olrank
