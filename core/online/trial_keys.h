#pragma once

#include <cstdint>
#include <string_view>

#include "core/random/rng_stream.h"

namespace olrank {

/// The keys of a trial's random draws. They contain no ranker's name and no running number, so that
/// compared rankers get the same draws.
struct TrialKeys {
  std::uint64_t seed = 0;
  std::uint64_t fold = 0;
  std::uint64_t click_model = 0;  // name_hash() of the user

  static TrialKeys of(std::uint64_t seed, std::uint64_t fold, std::string_view user) {
    return {seed, fold, name_hash(user.data(), user.size())};
  }
  PhiloxKey key(Purpose purpose, std::uint64_t member = 0) const {
    return make_key(
        {.seed = seed, .purpose = purpose, .fold = fold, .click_model = click_model, .member = member});
  }
};

}  // namespace olrank
