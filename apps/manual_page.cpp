#include "apps/manual_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/version.h"

namespace olrank {
namespace {

/// Text that man prints as it is.
std::string plain(const std::string& text) {
  std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text)
    escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c == '\n' ? ' ' : c);
  return escaped;
}

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
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
      fmt::format(".SH OLRANK {}\n{}\n", plain(in_capitals(command.path)), plain(command.summary));
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

}  // namespace

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

}  // namespace olrank
