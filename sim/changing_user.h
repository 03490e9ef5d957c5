#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/online/click_model.h"

namespace olrank {

/// A user whose intent changes abruptly, in the way of the piecewise stationary bandits of the literature
/// (Li and de Rijke, "Cascading non-stationary bandits: online learning to rank in the non-stationary
/// cascade model", IJCAI 2019): rounds 1 to E follow the first intent, the next E rounds the second, and so
/// on. The intent is a function of the round, so the user has no state, and all rankers see the changes in
/// the same rounds.
class ChangingUser : public ClickModel {
 public:
  /// `every` is E. After the last intent the first one returns, or, without `repeat`, the last one stays.
  ChangingUser(std::vector<std::unique_ptr<ClickModel>> intents, std::int64_t every, bool repeat);

  /// The intent of a round, from 0; rounds count from 1.
  std::size_t intent_of(std::uint32_t round) const;

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;

 private:
  std::vector<std::unique_ptr<ClickModel>> intents_;
  std::int64_t every_;
  bool repeat_;
};

}  // namespace olrank
