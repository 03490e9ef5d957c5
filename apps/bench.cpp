#include "apps/bench/commands.h"
#include "apps/command.h"

namespace olrank {

std::unique_ptr<Command> make_bench_command() {
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto& make : {make_bench_covariance_command, make_bench_ops_command, make_bench_round_command,
                           make_bench_long_command, make_bench_data_command, make_bench_recommend_command,
                           make_bench_generalisation_command}) {
    commands.push_back(make());
  }
  return std::make_unique<CommandGroup>(
      "bench", "benchmarks: full covariance against its approximations, and the cost of every operation",
      "No subcommand given. See 'olrank bench --help'.", std::move(commands));
}

}  // namespace olrank
