#include "models/skeleton/model_learner.h"

#include <fmt/format.h>

namespace olrank {

void member_count(StateFields& state, std::size_t expected) {
  state.number("members", static_cast<std::int64_t>(expected), [&](std::int64_t saved) {
    if (saved != static_cast<std::int64_t>(expected))
      state.reader().fail(fmt::format("The saved ensemble has {} members, this one {}.", saved, expected));
  });
}

}  // namespace olrank
