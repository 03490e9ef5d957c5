#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/runtime/log.h"
#include "core/version.h"

namespace olrank {
namespace {

/// A flag or a positional argument of a command, as --help shows it.
struct OutlinedFlag {
  std::vector<std::string> names;    // with dashes; a positional argument has its name
  std::string value;                 // the name of the value's type; empty for a switch
  std::vector<std::string> choices;  // all values, where the type lists them
  std::string help;
  std::string group;  // of the settings, "[ranker]"; empty for a flag of the command itself
  bool positional = false;
};

struct OutlinedCommand {
  std::string path;  // "bench covariance"; empty for the program itself
  std::string summary;
  std::vector<OutlinedFlag> flags;  // without those that every command inherits
  std::vector<std::pair<std::string, std::string>> subcommands;  // name and summary
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

/// The program and all its commands, each before its subcommands. `command` is any of the program's.
std::vector<OutlinedCommand> outline_of_program(const CLI::App& command) {
  // CLI11 hands out the parent of a constant App as a constant.
  const CLI::App* program = &command;
  while (program->get_parent() != nullptr) program = program->get_parent();
  std::vector<OutlinedCommand> commands;
  outline(*program, "", true, commands);
  return commands;
}

/// Text that man prints as it is.
std::string plain(const std::string& text) {
  std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text)
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c == '\n' ? ' ' : c);
  return escaped;
}

std::string entry(const std::string& name, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", name, plain(text));
}

std::string entry_of(const OutlinedFlag& flag) {
  std::string name;
  for (const std::string& one : flag.names)
    name += (name.empty() ? "\\fB" : ", \\fB") + plain(one) + "\\fR";
  if (!flag.value.empty() && !flag.positional) name += " \\fI" + plain(flag.value) + "\\fR";
  return entry(name, flag.help);
}

/// The groups of settings of a command, in their order.
std::vector<std::string> setting_groups(const OutlinedCommand& command) {
  std::vector<std::string> groups;
  for (const OutlinedFlag& flag : command.flags) {
    if (!flag.group.empty() && std::find(groups.begin(), groups.end(), flag.group) == groups.end())
      groups.push_back(flag.group);
  }
  return groups;
}

std::string section_of(const OutlinedCommand& command) {
  std::string text =
      fmt::format(".SH OLRANK {}\n{}\n", plain(capitals(command.path)), plain(command.summary));
  for (const OutlinedFlag& flag : command.flags) {
    if (flag.group.empty()) text += entry_of(flag);
  }
  const std::vector<std::string> groups = setting_groups(command);
  if (!groups.empty())
    text += fmt::format(".PP\nIt takes the settings of {}, below.\n",
                        plain(fmt::format("{}", fmt::join(groups, ", "))));
  return text;
}

/// Every setting once, from the first command that has it.
std::string settings_section(const std::vector<OutlinedCommand>& commands) {
  std::vector<std::string> groups;
  for (const OutlinedCommand& command : commands) {
    for (const std::string& group : setting_groups(command)) {
      if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
    }
  }
  std::string text =
      ".SH SETTINGS\nA configuration file has them as keys of its tables; a flag overrides the file.\n";
  for (const std::string& group : groups) {
    text += fmt::format(".SS {}\n", plain(group));
    std::vector<std::string> told;
    for (const OutlinedCommand& command : commands) {
      for (const OutlinedFlag& flag : command.flags) {
        if (flag.group != group || std::find(told.begin(), told.end(), flag.names.back()) != told.end())
          continue;
        told.push_back(flag.names.back());
        text += entry_of(flag);
      }
    }
  }
  return text;
}

/// The page olrank(1) in the language of man: commands, their flags, and the settings that several share.
std::string manual_page(const std::vector<OutlinedCommand>& commands) {
  const OutlinedCommand& program = commands.front();
  std::string text = fmt::format(
      ".TH OLRANK 1 \"\" \"olrank {}\" \"User Commands\"\n"
      ".ad l\n.SH NAME\nolrank \\- rankers that learn online, from clicks\n"
      ".SH SYNOPSIS\n\\fBolrank\\fR \\fICOMMAND\\fR [\\fIFLAG\\fR]...\n"
      ".SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      plain(std::string(version())), plain(program.summary));
  for (const auto& [name, summary] : program.subcommands)
    text += entry("\\fB" + plain(name) + "\\fR", summary);
  text += ".SH FLAGS OF EVERY COMMAND\n";
  for (const OutlinedFlag& flag : program.flags) text += entry_of(flag);
  for (std::size_t i = 1; i < commands.size(); ++i) text += section_of(commands[i]);
  return text + settings_section(commands) +
         ".SH EXIT STATUS\n"
         ".TP\n0\nThe command did what it was asked to.\n"
         ".TP\n1\nIt failed while it ran.\n"
         ".TP\n2\nThe command line or a configuration is wrong.\n"
         ".PP\nA signal that stops a command gives 128 and its number.\n";
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
std::string find_command(const std::vector<OutlinedCommand>& commands, const std::string& words) {
  std::vector<std::string> paths;
  for (std::size_t i = 1; i < commands.size(); ++i) paths.push_back(quoted(commands[i].path));
  return fmt::format(
      "  for word in {}; do\n"
      "    case \"${{command:+$command }}$word\" in\n"
      "      {}) command=\"${{command:+$command }}$word\" ;;\n"
      "    esac\n"
      "  done\n",
      words, fmt::join(paths, " | "));
}

/// Code that sets `values`, or completes a file name.
std::string find_values(const std::vector<OutlinedCommand>& commands, const std::string& files) {
  std::string text = "  case \"$command:$before\" in\n";
  for (const auto& [values, patterns] : patterns_by_values(commands)) {
    text += fmt::format("    {})\n      {} ;;\n", fmt::join(patterns, " | "),
                        values.empty() ? files : "values=" + quoted(values));
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
  text += find_command(commands, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"");
  text += find_values(commands, "return");
  text += "  case \"$command\" in\n";
  for (const OutlinedCommand& command : commands) {
    std::vector<std::string> names;
    for (const OutlinedFlag& flag : flags_of(command, commands.front()))
      names.insert(names.end(), flag.names.begin(), flag.names.end());
    std::vector<std::string> subcommands;
    for (const auto& [name, summary] : command.subcommands) subcommands.push_back(name);
    text += fmt::format("    {}) commands='{}' flags='{}' ;;\n", quoted(command.path),
                        fmt::join(subcommands, " "), fmt::join(names, " "));
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

std::string zsh_completion(const std::vector<OutlinedCommand>& commands) {
  std::string text =
      "#compdef olrank\n"
      "# Completion of olrank in zsh, written by `olrank completion zsh`.\n"
      "_olrank() {\n"
      "  local before=$words[CURRENT-1] command= values= word\n"
      "  local -a commands flags\n"
      "  if [[ $words[CURRENT] == --*=* ]]; then before=${words[CURRENT]%%=*}; compset -P '*='; fi\n";
  text += find_command(commands, "\"${(@)words[2,CURRENT-1]}\"");
  text += find_values(commands, "_files; return");
  text += "  case \"$command\" in\n";
  for (const OutlinedCommand& command : commands) {
    text += fmt::format("    {})\n", quoted(command.path));
    for (const auto& [name, summary] : command.subcommands)
      text += fmt::format("      commands+=({})\n", quoted(name + ":" + summary));
    for (const OutlinedFlag& flag : flags_of(command, commands.front())) {
      for (const std::string& name : flag.names)
        text += fmt::format("      flags+=({})\n", quoted(name + ":" + flag.help));
    }
    text += "      ;;\n";
  }
  return text +
         "  esac\n"
         "  if [[ -n $values ]]; then\n"
         "    compadd -- ${=values}\n"
         "  elif [[ $words[CURRENT] == -* ]]; then\n"
         "    _describe -o flag flags\n"
         "  elif (( $#commands )); then\n"
         "    _describe command commands\n"
         "  else\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         "if [[ $funcstack[1] == _olrank ]]; then _olrank \"$@\"; else compdef _olrank olrank; fi\n";
}

class CompletionCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    app_ = &app;
    add_option(app, "shell", shell_, "SHELL", "bash or zsh: for example, source <(olrank completion bash)");
  }
  int run(const OutputFlags&) override {
    if (shell_ != "bash" && shell_ != "zsh") {
      throw InvalidArgument(shell_.empty()
                                ? "No shell given: name bash or zsh."
                                : "There is no completion for '" + shell_ + "': choose bash or zsh.");
    }
    const auto commands = outline_of_program(*app_);
    write_output(shell_ == "bash" ? bash_completion(commands) : zsh_completion(commands));
    return 0;
  }

 private:
  const CLI::App* app_ = nullptr;
  std::string shell_;
};

class ManCommand : public Command {
 public:
  void declare(CLI::App& app) override { app_ = &app; }
  int run(const OutputFlags&) override {
    write_output(manual_page(outline_of_program(*app_)));
    return 0;
  }

 private:
  const CLI::App* app_ = nullptr;
};

}  // namespace

const CommandEntry kCompletionCommand{"completion", "print the completion script of a shell",
                                      make_command<CompletionCommand>};
const CommandEntry kManCommand{"man", "print the manual page, for example to 'man -l -'",
                               make_command<ManCommand>};

}  // namespace olrank
