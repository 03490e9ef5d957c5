#include "models/model_learner.h"

#include <fmt/format.h>

namespace olrank {

void require_members(StateReader& state, std::size_t expected) {
  const auto saved = state.get_one<std::int64_t>("members");
  if (saved != static_cast<std::int64_t>(expected))
    state.fail(fmt::format("The saved ensemble has {} members, this one {}.", saved, expected));
}

}  // namespace olrank
