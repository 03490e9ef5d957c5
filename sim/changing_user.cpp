#include "sim/changing_user.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace olrank {

ChangingUser::ChangingUser(std::vector<std::unique_ptr<ClickModel>> intents, std::int64_t every,
                           bool repeat)
    : intents_(std::move(intents)), every_(every), repeat_(repeat) {
  assert(!intents_.empty() && every_ > 0);
}

std::size_t ChangingUser::intent_of(std::uint32_t round) const {
  assert(round > 0);
  const std::int64_t changes = (std::int64_t{round} - 1) / every_;
  const std::int64_t count = std::ssize(intents_);
  return repeat_ ? changes % count : std::min(changes, count - 1);
}

void ChangingUser::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                         std::uint32_t round, ClickLog& log) const {
  intents_[intent_of(round)]->click(grades, shown, key, round, log);
}

}  // namespace olrank
