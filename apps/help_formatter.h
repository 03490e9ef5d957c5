#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace olrank {

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
