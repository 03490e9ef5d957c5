#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/online/click_model.h"
#include "core/online/online_ranker.h"
#include "sim/click_models.h"

namespace olrank {

inline PhiloxKey user_key(std::uint64_t seed = 1) {
  return TrialKeys::of(seed, 1, "a user of tests").key(Purpose::kClick);
}

inline ScanningUser dependent_user(const ClickTable& table, StopDraw rule, double noise) {
  return {{table.click, table.stop, rule}, noise};
}

inline ScanningUser cascade_user(const std::vector<double>& click, double noise) {
  return {{click, std::vector<double>(click.size(), 1.0)}, noise};
}

inline ExaminingUser position_user(std::vector<double> click, std::vector<double> examination,
                                   double position_bias, double noise) {
  return {std::move(click), {{}, std::move(examination), position_bias, false}, noise};
}

/// Docs 0, 1, 2, …: a list whose doc at rank r is doc r.
inline std::vector<std::int32_t> in_order(std::size_t docs) {
  std::vector<std::int32_t> shown(docs);
  std::iota(shown.begin(), shown.end(), 0);
  return shown;
}

/// Shows the docs in order in each of `rounds` rounds.
inline void play(const ClickModel& user, const std::vector<std::uint8_t>& grades, std::uint32_t rounds,
                 const std::function<void(const ClickLog&)>& see) {
  const std::vector<std::int32_t> shown = in_order(grades.size());
  ClickLog log;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    user.click({grades}, shown, user_key(), round, log);
    see(log);
  }
}

/// Returns a log's pattern as one number: two bits a rank, the one of least weight for rank 0's click.
inline std::size_t pattern_of(const ClickLog& log) {
  std::size_t pattern = 0;
  for (std::size_t rank = 0; rank < log.clicks.size(); ++rank) {
    pattern |= static_cast<std::size_t>(log.clicks[rank]) << (2 * rank);
    pattern |= static_cast<std::size_t>(log.examined[rank]) << (2 * rank + 1);
  }
  return pattern;
}

/// How often each pattern came up.
inline std::vector<std::int64_t> pattern_counts(const ClickModel& user,
                                                const std::vector<std::uint8_t>& grades,
                                                std::uint32_t rounds) {
  std::vector<std::int64_t> counts(std::size_t{1} << (2 * grades.size()), 0);
  play(user, grades, rounds, [&](const ClickLog& log) { ++counts[pattern_of(log)]; });
  return counts;
}

}  // namespace olrank
