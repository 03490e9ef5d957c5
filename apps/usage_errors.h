#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace olrank {

/// Throws InvalidArgument for the first flag or command that CLI11 did not recognise, with a suggestion if
/// there is one: the nearest name, or what other programs' flags are called here. `command` is the
/// subcommand given, null for none.
void refuse_unknown(const CLI::App& program, const CLI::App* command);

/// Throws InvalidArgument where a flag stands in the place of another flag's value: "--out --quiet" would
/// write to a folder of that name.
void refuse_flags_as_values(const CLI::App& program, const std::vector<std::string>& arguments);

/// A parse error of CLI11 as a sentence.
std::string usage_sentence(const CLI::ParseError& error);

/// Writes --help within 100 columns, or those of a narrower terminal.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(int columns) : columns_(columns) {}

  std::string make_description(const CLI::App* app) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  std::string entry(const std::string& name, const std::string& description) const;

  int columns_;
};

/// The columns for --help on standard output.
int help_columns();

}  // namespace olrank
