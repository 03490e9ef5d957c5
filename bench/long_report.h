#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/long_trial.h"
#include "bench/measurement_file.h"

namespace olrank {

struct LongRanker {
  std::string name;
  std::vector<LongSpan> spans;
  bool same_bits = false;  // of a trial that was resumed from the checkpoint before the last
};

/// What `olrank bench long` has measured.
struct LongReport {
  std::string command;
  Machine machine;
  std::string data;
  std::string user;
  std::int64_t fold = 1;
  std::int64_t seed = 1;
  std::vector<LongRanker> rankers;
};

/// The mean round of the last span over that of the third, which comes after a trial's beginning; NaN with
/// fewer than four spans.
double growth_of(const LongRanker& ranker);

std::string long_json(const LongReport& report);
/// A line for each span and ranker, and a sentence for each ranker. Times are also told over those of the
/// first ranker.
std::string long_text(const LongReport& report, std::int64_t columns);

}  // namespace olrank
