#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/final_tables.h"

namespace olrank {

/// A ranker that is not the best one, compared with it on the trials that both finished.
struct Rival {
  std::size_t row = 0;
  const RankerPair* pair = nullptr;  // null without common trials
  double behind = 0.0;               // mean difference to the best, positive if worse

  double half_width() const { return pair->test.difference.half_width; }
  bool tested() const;
  /// Significantly, after Holm's correction.
  bool worse() const;
};

/// The rankers of a table in the order of one measure of which more is better. Skylines compete only with
/// each other.
struct Ranking {
  const FinalColumn* column = nullptr;  // null without values
  std::size_t best = 0;                 // a row
  std::vector<Rival> rivals;            // best first
  std::vector<Rival> tied;              // those that are not significantly worse
  std::vector<Rival> worse;             // the others
  bool tested = false;                  // at least one rival was
  bool separates = false;               // at least one pair differs significantly, with the best or not
  std::size_t units = 0;                // the fewest seeds or folds of a comparison with the best
  std::string unit;                     // "seed" or "fold"
  std::vector<bool> considered;         // by row
};

Ranking ranking_of(const FinalTable& table, Measure measure);

}  // namespace olrank
