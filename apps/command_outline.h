#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace olrank {

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

/// The program and all its commands, each before its subcommands. `command` is any of the program's.
std::vector<OutlinedCommand> outline_of_program(const CLI::App& command);

}  // namespace olrank
