#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/experiment_results.h"

namespace olrank {

/// How far a running experiment has come.
struct DashboardState {
  std::string name;
  std::int64_t finished = 0;  // trials
  std::int64_t running = 0;
  std::int64_t expected = 0;
  std::int64_t rounds = 0;  // played, as far as evaluations tell
  std::int64_t expected_rounds = 0;
  std::int64_t peak_memory_bytes = 0;  // the largest of finished trials; 0 before the first

  struct Ranker {
    std::string name;
    std::int64_t finished = 0;
    std::int64_t trials = 0;
    std::vector<double> heights;     // the mean offline curve of all its trials
    double rounds_per_second = 0.0;  // of a trial; NaN before the first
  };
  std::vector<Ranker> rankers;
};

DashboardState dashboard_state(const ExperimentResults& experiment);

/// `rate` is the rounds a second of the whole experiment, 0 while nobody knows. No line is longer than
/// `columns` characters.
std::string dashboard_text(const DashboardState& state, double rate, int columns);

/// Heights as a row of blocks of `width` characters on a scale from `low` to `high`.
std::string sparkline(const std::vector<double>& heights, double low, double high, std::size_t width);

}  // namespace olrank
