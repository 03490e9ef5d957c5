#pragma once

#include <cstddef>
#include <vector>

#include "core/online/click_model.h"

namespace olrank {

/// How likely a rank is examined, given where the last click was; the first of these that is set.
struct BrowsingTable {
  /// γ_{r,r'} rank by rank: for rank r = 1, 2, …, the r numbers for a last click at r' = 0 (none), 1, …,
  /// r − 1. Ranks beyond the table are not examined.
  std::vector<double> by_last_click;
  /// By distance r − r' = 1, 2, …; 0 beyond.
  std::vector<double> by_distance;
  /// Otherwise (1/(r − r'))^η.
  double position_bias = 1.0;  // η

  /// γ for ranks from 1; `last` is 0 without a click above.
  double examination(std::size_t rank, std::size_t last) const;
};

/// User browsing model (Dupret and Piwowarski, "A user browsing model to predict search engine click data
/// from past observations", SIGIR 2008): a rank is examined with a probability that depends on it and on
/// the rank of the last click above it, and an examined document is clicked with P(click | grade).
class UserBrowsingClickModel : public ClickModel {
 public:
  /// `click` is P(click | grade) for every grade of the data; `noise` flips the click of an examined
  /// document, and a flipped click counts as the last one, as it does in a log.
  UserBrowsingClickModel(std::vector<double> click, BrowsingTable browsing, double noise);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;

 private:
  std::vector<double> click_;
  BrowsingTable browsing_;
  double noise_;
};

}  // namespace olrank
