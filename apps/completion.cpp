#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/runtime/log.h"

namespace olrank {
namespace {

/// A flag or a positional argument of a command, as --help shows it.
struct OutlinedFlag {
  std::vector<std::string> names;    // with dashes; a positional argument has its name
  std::string value;                 // the name of the value's type; empty for a switch
  std::vector<std::string> choices;  // all values, where the type lists them
  bool positional = false;
};

struct OutlinedCommand {
  std::string path;                 // "bench covariance"; empty for the program itself
  std::vector<OutlinedFlag> flags;  // without those that every command inherits
  std::vector<std::string> subcommands;
};

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
  return flag;
}

void outline(const CLI::App& app, const std::string& path, bool is_program,
             std::vector<OutlinedCommand>& commands) {
  OutlinedCommand command{path, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    const bool inherited = !is_program && option == app.get_help_ptr();
    if (!inherited) command.flags.push_back(outline_of(*option));
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* below : subcommands) command.subcommands.push_back(below->get_name());
  commands.push_back(std::move(command));
  for (const CLI::App* below : subcommands)
    outline(*below, is_program ? below->get_name() : path + " " + below->get_name(), false, commands);
}

/// The program and all its commands, each before its subcommands. `command` is any of the program's.
std::vector<OutlinedCommand> outline_of_program(const CLI::App& command) {
  // CLI11 hands out the parent of a constant App as a constant.
  const CLI::App* program = &command;
  while (program->get_parent() != nullptr) program = program->get_parent();
  std::vector<OutlinedCommand> commands;
  outline(*program, "", true, commands);
  return commands;
}

/// Text between single quotes.
std::string quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c == '\n' ? ' ' : c);
  return quoted + "'";
}

/// The patterns "run:--ranker" of the flags that take a value, by the list of values; files have no list.
/// A flag that means the same in every command is "*:--out".
std::map<std::string, std::vector<std::string>> patterns_by_values(
    const std::vector<OutlinedCommand>& commands) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> uses;  // flag, values, commands
  for (const OutlinedCommand& command : commands) {
    for (const OutlinedFlag& flag : command.flags) {
      if (flag.positional) continue;
      const std::string values =
          flag.value.empty() ? "switch" : fmt::format("{}", fmt::join(flag.choices, " "));
      // The flags of the program belong to every command.
      for (const std::string& name : flag.names) uses[name][values].push_back(command.path);
    }
  }
  std::map<std::string, std::vector<std::string>> patterns;
  for (const auto& [name, by_values] : uses) {
    for (const auto& [values, paths] : by_values) {
      if (values == "switch") continue;
      if (by_values.size() == 1) {
        patterns[values].push_back("*:" + name);
        continue;
      }
      for (const std::string& path : paths) patterns[values].push_back(fmt::format("'{}':{}", path, name));
    }
  }
  return patterns;
}

/// Code that finds the command among the words before the cursor.
std::string find_command(const std::vector<OutlinedCommand>& commands) {
  std::vector<std::string> paths;
  for (std::size_t i = 1; i < commands.size(); ++i) paths.push_back(quoted(commands[i].path));
  return fmt::format(
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"${{command:+$command }}$word\" in\n"
      "      {}) command=\"${{command:+$command }}$word\" ;;\n"
      "    esac\n"
      "  done\n",
      fmt::join(paths, " | "));
}

/// Code that sets `values`, or completes a file name.
std::string find_values(const std::vector<OutlinedCommand>& commands) {
  std::string text = "  case \"$command:$before\" in\n";
  for (const auto& [values, patterns] : patterns_by_values(commands)) {
    text += fmt::format("    {})\n      {} ;;\n", fmt::join(patterns, " | "),
                        values.empty() ? "return" : "values=" + quoted(values));
  }
  return text + "  esac\n";
}

/// The flags of a command and those that it inherits.
std::vector<OutlinedFlag> flags_of(const OutlinedCommand& command, const OutlinedCommand& program) {
  std::vector<OutlinedFlag> flags = command.flags;
  if (&command != &program) flags.insert(flags.end(), program.flags.begin(), program.flags.end());
  std::erase_if(flags, [](const OutlinedFlag& flag) { return flag.positional; });
  return flags;
}

/// A script that completes commands, flags, values from a list, and file names.
std::string bash_completion(const std::vector<OutlinedCommand>& commands) {
  std::string text =
      "# Completion of olrank in bash, written by `olrank completion bash`.\n"
      "_olrank() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local command= commands= flags= values= word\n"
      "  COMPREPLY=()\n"
      "  # bash splits --flag=value at the sign.\n"
      "  if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
      "  if [[ $current == = ]]; then current=; fi\n";
  text += find_command(commands);
  text += find_values(commands);
  text += "  case \"$command\" in\n";
  for (const OutlinedCommand& command : commands) {
    std::vector<std::string> names;
    for (const OutlinedFlag& flag : flags_of(command, commands.front()))
      names.insert(names.end(), flag.names.begin(), flag.names.end());
    text += fmt::format("    {}) commands='{}' flags='{}' ;;\n", quoted(command.path),
                        fmt::join(command.subcommands, " "), fmt::join(names, " "));
  }
  return text +
         "  esac\n"
         "  if [[ -n $values ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
         "  elif [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
         "  elif [[ -n $commands ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _olrank olrank\n";
}

class CompletionCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    app_ = &app;
    add_option(
        app, "shell", shell_, "SHELL",
        "bash, or zsh after 'autoload -U bashcompinit && bashcompinit': source <(olrank completion bash)");
  }
  int run(const OutputFlags&) override {
    if (shell_ != "bash") {
      throw InvalidArgument(shell_.empty()
                                ? "No shell given: name bash, whose completion zsh takes, too."
                                : "There is no completion for '" + shell_ +
                                      "': choose bash; zsh takes it after 'autoload -U bashcompinit && "
                                      "bashcompinit'.");
    }
    write_output(bash_completion(outline_of_program(*app_)));
    return 0;
  }

 private:
  const CLI::App* app_ = nullptr;
  std::string shell_;
};

}  // namespace

const CommandEntry kCompletionCommand{"completion", "print the completion script of a shell",
                                      make_command<CompletionCommand>};

}  // namespace olrank
