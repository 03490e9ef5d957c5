#include "apps/command_outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace olrank {
namespace {

/// The values of a type such as "auto|bar|lines"; none for a type that names one value.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  std::istringstream text(type);
  for (std::string choice; std::getline(text, choice, '|');) choices.push_back(choice);
  const bool are_values =
      choices.size() > 1 && std::none_of(choices.begin(), choices.end(), [](const auto& choice) {
        return choice.empty() || (choice[0] >= 'A' && choice[0] <= 'Z');
      });
  return are_values ? choices : std::vector<std::string>();
}

OutlinedFlag outline_of(const CLI::Option& option) {
  OutlinedFlag flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  flag.positional = flag.names.empty();
  if (flag.positional) flag.names.push_back(option.get_name());
  if (option.get_items_expected_max() > 0) flag.value = option.get_type_name();
  flag.choices = choices_of(flag.value);
  flag.help = option.get_description();
  if (option.get_group().starts_with('[')) flag.group = option.get_group();
  return flag;
}

void outline(const CLI::App& app, const std::string& path, bool is_program,
             std::vector<OutlinedCommand>& commands) {
  OutlinedCommand command{path, app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    const bool inherited = !is_program && option == app.get_help_ptr();
    if (!inherited) command.flags.push_back(outline_of(*option));
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* below : subcommands)
    command.subcommands.emplace_back(below->get_name(), below->get_description());
  commands.push_back(std::move(command));
  for (const CLI::App* below : subcommands)
    outline(*below, is_program ? below->get_name() : path + " " + below->get_name(), false, commands);
}

}  // namespace

std::vector<OutlinedCommand> outline_of_program(const CLI::App& command) {
  // CLI11 hands out the parent of a constant App as a constant.
  const CLI::App* program = &command;
  while (program->get_parent() != nullptr) program = program->get_parent();
  std::vector<OutlinedCommand> commands;
  outline(*program, "", true, commands);
  return commands;
}

}  // namespace olrank
