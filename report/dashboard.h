#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/experiment_results.h"

namespace olrank {

/// Progress of an experiment.
struct DashboardState {
  std::string name;
  std::int64_t finished = 0;  // trials
  std::int64_t unfinished = 0;
  std::int64_t expected = 0;
  std::int64_t rounds = 0;  // played up to each trial's last evaluation
  std::int64_t expected_rounds = 0;
  std::int64_t peak_memory_bytes = 0;  // maximum over finished trials; 0 before the first

  struct Ranker {
    std::string name;
    std::int64_t finished = 0;
    std::int64_t trials = 0;
    std::vector<double> heights;     // the mean offline curve of its trials
    double rounds_per_second = 0.0;  // mean per trial; NaN before the first
  };
  std::vector<Ranker> rankers;
};

DashboardState dashboard_state(const ExperimentResults& experiment);

/// `rate` is the whole experiment's rounds per second, 0 if unknown. No line exceeds `columns` characters.
std::string dashboard_text(const DashboardState& state, double rate, int columns);

/// Heights as a row of `width` block characters, scaled from `low` to `high`.
std::string sparkline(const std::vector<double>& heights, double low, double high, std::size_t width);

}  // namespace olrank
