#include "apps/command.h"
#include "apps/data/data_files.h"

namespace olrank {

std::unique_ptr<Command> make_data_command() {
  std::vector<std::unique_ptr<Command>> commands;
  for (const auto& make : {make_data_inspect_command, make_data_convert_command, make_data_synth_command,
                           make_data_split_command}) {
    commands.push_back(make());
  }
  return std::make_unique<CommandGroup>("data", "inspect, convert, generate or split data sets",
                                        "No subcommand given. See 'olrank data --help'.",
                                        std::move(commands));
}

}  // namespace olrank
