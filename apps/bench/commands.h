#pragma once

#include <memory>

#include "apps/command.h"

namespace olrank {

// The commands of `olrank bench`.
std::unique_ptr<Command> make_bench_covariance_command();

}  // namespace olrank
