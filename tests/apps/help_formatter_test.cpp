#include "apps/command.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/text/text_table.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

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

/// Says why the command line, split at blanks, is refused.
std::string refused(const std::string& line) {
  CLI::App program;
  program.allow_extras();
  const Commands commands(program);
  return message_of<std::exception>([&] { program.parse(line); });
}

TEST(Commands, CountsTakeNoNegativeNumber) {
  for (const std::string line :
       {"serve --to-round", "serve --checkpoint-every", "serve --connections", "serve --max-impressions",
        "serve --log-keep", "log show --from-round", "log show --query q --to-round", "log cut --to-round",
        "log cut --from-round", "data split in --out out --seed"}) {
    const std::string flag = line.substr(line.rfind("--"));
    EXPECT_EQ(refused(line + " -1"), flag + ": It must be a whole number from 0, not -1.");
    EXPECT_EQ(refused(line + " 1"), kNoError);
  }
}

TEST(Commands, WriteNothingIntoTheStateOfAService) {
  const TemporaryFolder folder;
  const std::string state = folder / "state";
  std::filesystem::create_directory(state);
  for (const char* name : {"/service.toml", "/feedback.jsonl"}) std::ofstream(state + name) << "\n";
  const std::string link = folder / "link";
  std::filesystem::create_symlink(state + "/feedback.jsonl", link);
  const std::string other = folder / "new";
  for (const std::string line :
       {"rank --out", "rank --qrels", "export --out", "clicks fit --out", "eval --per-query",
        "report --latex", "report --csv", "report --json", "recommend synth name --out",
        "recommend interview --model m --trees", "ope --page", "bench ops --json",
        "data inspect in --discriminant", "data convert in", "data split in --out", "data synth name --out",
        "run --trace"}) {
    for (const std::string& file : {state + "/new", state + "/feedback.jsonl", state, link}) {
      const std::string said = refused(line + " " + file);
      EXPECT_TRUE(contains(said, file + " is in the state folder of a service, ")) << line << said;
    }
    EXPECT_EQ(refused(line + " " + other), kNoError);
    EXPECT_EQ(refused(line + " -"), kNoError);
  }
}

TEST(HelpFormatter, EveryCommandFitsItsColumns) {
  for (const int columns : {72, 100}) {
    const std::vector<std::string> pages = help_of_every_command(columns);
    EXPECT_GE(pages.size(), 39U);
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
  EXPECT_TRUE(contains(app.help(),
                       "  --structure full|diagonal|diagonal-of-inverse|none\n"
                       "                              one of these four\n"
                       "  --x                         a description that does not\n"
                       "                              fit on one line of sixty\n"))
      << app.help();
}

}  // namespace
}  // namespace olrank
