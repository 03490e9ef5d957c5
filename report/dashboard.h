#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/experiment_results.h"

namespace olrank {

/// How far an experiment is, from its files.
struct DashboardState {
  enum class Activity { kRunning, kStopped, kFinished };

  std::string name;
  Activity activity = Activity::kRunning;
  std::int64_t finished = 0;  // trials
  std::int64_t unfinished = 0;
  std::int64_t expected = 0;
  std::int64_t rounds = 0;             // of a trial
  std::int64_t cutoff = 0;             // 0 before the first evaluation
  double share = 0.0;                  // of the work that is done
  std::optional<double> seconds_left;  // of a running one
  std::int64_t peak_memory_bytes = 0;  // maximum over finished trials; 0 before the first

  struct Ranker {
    std::string name;
    std::int64_t finished = 0;
    std::int64_t trials = 0;
    std::vector<double> heights;     // the mean offline curve of its trials
    double rounds_per_second = 0.0;  // mean per trial; NaN before the first
  };
  struct User {
    std::string name;
    std::vector<Ranker> rankers;
  };
  std::vector<User> users;
};

/// `in_use`: whether a process writes to the folder.
DashboardState dashboard_state(const ExperimentResults& experiment, bool in_use);

/// No line exceeds `columns` characters; at least 48.
std::string dashboard_text(const DashboardState& state, int columns);

/// Heights as a row of `width` block characters, scaled from `low` to `high`.
std::string sparkline(const std::vector<double>& heights, double low, double high, std::size_t width);

}  // namespace olrank
