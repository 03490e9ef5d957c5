#pragma once

#include <cstdint>
#include <string>

#include "core/settings/schema.h"

namespace olrank {

/// Where and how an experiment runs. None of these settings changes its results on one type of machine.
struct RunSettings {
  std::string device = "auto";
  std::int64_t threads = 0;
  std::int64_t jobs = 1;
  std::int64_t checkpoint_every = 1000;
  std::int64_t keep_checkpoints = 1;
  std::string out = "runs/latest";

  static const Schema& schema();
};

}  // namespace olrank
