#include <memory>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/data/commands.h"
#include "core/error.h"

namespace olrank {
namespace {

class DataCommand : public Command {
 public:
  std::string name() const override { return "data"; }
  std::string summary() const override { return "inspect, convert, generate and split data sets"; }
  void declare(CLI::App& app) override {
    for (const auto& make : {make_data_inspect_command, make_data_convert_command, make_data_synth_command,
                             make_data_split_command}) {
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
    throw InvalidArgument("What to do with data is missing. See 'olrank data --help'.");
  }

 private:
  std::vector<std::pair<std::unique_ptr<Command>, CLI::App*>> commands_;
};

}  // namespace

std::unique_ptr<Command> make_data_command() {
  return std::make_unique<DataCommand>();
}

}  // namespace olrank
