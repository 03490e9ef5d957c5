#include "apps/command.h"

#include <unistd.h>

#include "core/error.h"
#include "core/runtime/progress.h"

namespace olrank {

int OutputFlags::columns() const {
  return wide ? 0 : terminal_columns(STDOUT_FILENO);
}

CommandGroup::CommandGroup(std::string name, std::string summary, std::string missing,
                           std::vector<std::unique_ptr<Command>> commands)
    : name_(std::move(name)), summary_(std::move(summary)), missing_(std::move(missing)) {
  for (auto& command : commands) commands_.emplace_back(std::move(command), nullptr);
}

void CommandGroup::declare(CLI::App& app) {
  for (auto& [command, parsed] : commands_) {
    parsed = app.add_subcommand(command->name(), command->summary());
    parsed->fallthrough();
    parsed->allow_extras();
    command->declare(*parsed);
  }
  app.require_subcommand(0, 1);
}

int CommandGroup::run(const OutputFlags& output) {
  for (auto& [command, app] : commands_) {
    if (app->parsed()) return command->run(output);
  }
  throw InvalidArgument(missing_);
}

}  // namespace olrank
