#include "apps/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace olrank {
namespace {

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

}  // namespace

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

}  // namespace olrank
