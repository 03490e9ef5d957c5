#pragma once

#include <memory>

#include "apps/command.h"

namespace olrank {

// The commands of `olrank bench`.
std::unique_ptr<Command> make_bench_covariance_command();
std::unique_ptr<Command> make_bench_data_command();
std::unique_ptr<Command> make_bench_generalisation_command();
std::unique_ptr<Command> make_bench_long_command();
std::unique_ptr<Command> make_bench_ops_command();
std::unique_ptr<Command> make_bench_recommend_command();
std::unique_ptr<Command> make_bench_round_command();

}  // namespace olrank
