#include <memory>
#include <utility>
#include <vector>

#include "apps/bench/commands.h"
#include "apps/command.h"
#include "core/error.h"

namespace olrank {
namespace {

class BenchCommand : public Command {
 public:
  std::string name() const override { return "bench"; }
  std::string summary() const override { return "what full covariance buys, and what everything costs"; }
  void declare(CLI::App& app) override {
    for (const auto& make : {make_bench_covariance_command, make_bench_ops_command,
                             make_bench_round_command, make_bench_scale_command, make_bench_data_command}) {
      commands_.push_back({make(), nullptr});
    }
    for (auto& [command, parsed] : commands_) {
      parsed = app.add_subcommand(command->name(), command->summary());
      parsed->fallthrough();
      parsed->allow_extras();
      command->declare(*parsed);
    }
    app.require_subcommand(0, 1);
  }
  int run(const OutputFlags& output) override {
    for (auto& [command, app] : commands_) {
      if (app->parsed()) return command->run(output);
    }
    throw InvalidArgument("What to measure is missing. See 'olrank bench --help'.");
  }

 private:
  std::vector<std::pair<std::unique_ptr<Command>, CLI::App*>> commands_;
};

}  // namespace

std::unique_ptr<Command> make_bench_command() {
  return std::make_unique<BenchCommand>();
}

}  // namespace olrank
