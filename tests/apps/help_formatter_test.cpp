#include "apps/usage_errors.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/text/text_table.h"

namespace olrank {
namespace {

/// The help of a command and of its subcommands.
void collect_help(const CLI::App& app, std::vector<std::string>& pages) {
  pages.push_back(app.help("olrank " + app.get_name()));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    collect_help(*sub, pages);
}

std::vector<std::string> help_of_every_command(int columns) {
  std::vector<std::string> pages;
  CLI::App program;
  program.formatter(std::make_shared<HelpFormatter>(columns));
  const Commands commands(program);
  for (const CLI::App* app : program.get_subcommands([](const CLI::App*) { return true; }))
    collect_help(*app, pages);
  return pages;
}

TEST(HelpFormatter, EveryCommandFitsItsColumns) {
  for (const int columns : {72, 100}) {
    const std::vector<std::string> pages = help_of_every_command(columns);
    EXPECT_GE(pages.size(), 40U);
    for (const std::string& page : pages) {
      std::istringstream lines(page);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), columns) << line;
    }
  }
}

TEST(HelpFormatter, AlignsDescriptions) {
  CLI::App app;
  app.formatter(std::make_shared<HelpFormatter>(60));
  app.set_help_flag();
  std::string value;
  app.add_option("--structure", value, "one of these four")
      ->type_name("full|diagonal|diagonal-of-inverse|none");
  bool flag = false;
  app.add_flag("--x", flag, "a description that does not fit on one line of sixty");
  EXPECT_NE(app.help().find("  --structure full|diagonal|diagonal-of-inverse|none\n"
                            "                              one of these four\n"
                            "  --x                         a description that does not\n"
                            "                              fit on one line of sixty\n"),
            std::string::npos)
      << app.help();
}

}  // namespace
}  // namespace olrank
