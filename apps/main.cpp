#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/usage_errors.h"
#include "core/error.h"
#include "core/runtime/log.h"
#include "core/version.h"

namespace olrank {
namespace {

struct Registered {
  std::unique_ptr<Command> command;
  CLI::App* app;
};

bool needs_no_quotes(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./,:+=@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

/// The arguments, quoted for a shell.
std::string command_line(int argc, char** argv) {
  std::string line = "olrank";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (needs_no_quotes(word)) {
      line += " " + word;
      continue;
    }
    line += " '";
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += "'";
  }
  return line;
}

int run_program(int argc, char** argv) {
  CLI::App program("olrank learns to rank online, from clicks, and knows which orders it is certain of.",
                   "olrank");
  program.set_help_flag("-h,--help", "print this help and exit");  // subcommands inherit it
  OutputFlags output;
  output.command_line = command_line(argc, argv);
  // Subcommands inherit these flags, so they work before and after the command's name.
  program.add_flag("--json", output.json, "print JSON instead of tables");
  auto* quiet =
      program.add_flag("--quiet", output.quiet, "print only warnings and errors to stderr, no progress");
  program.add_flag("--verbose", output.verbose, "print details to stderr")->excludes(quiet);
  bool show_version = false;
  program.add_flag("--version", show_version, "print the version and exit");
  program.fallthrough();
  program.allow_extras();

  std::vector<Registered> commands;
  for (auto& make :
       {make_run_command, make_tune_command, make_bench_command, make_report_command, make_data_command,
        make_eval_command, make_rank_command, make_export_command, make_serve_command, make_info_command}) {
    std::unique_ptr<Command> command = make();
    CLI::App* app = program.add_subcommand(command->name(), command->summary());
    app->fallthrough();
    app->allow_extras();
    command->declare(*app);
    commands.push_back({std::move(command), app});
  }
  program.require_subcommand(0, 1);

  try {
    std::vector<std::string> arguments = without_help_command({argv + 1, argv + argc});
    refuse_flags_as_values(program, arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    program.parse(std::move(arguments));
  } catch (const CLI::CallForHelp& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    throw InvalidArgument(fmt::format("{} See 'olrank --help'.", usage_sentence(error)));
  }

  if (output.quiet) set_verbosity(Verbosity::kQuiet);
  if (output.verbose) set_verbosity(Verbosity::kVerbose);
  for (const Registered& registered : commands) {
    if (!registered.app->parsed()) continue;
    refuse_unknown(program, registered.app);
    return run_command(*registered.command, output);
  }
  refuse_unknown(program, nullptr);
  if (show_version) {
    fmt::print("olrank {} ({})\n", version(), revision());
    return 0;
  }
  throw InvalidArgument("No command given. See 'olrank --help'.");
}

}  // namespace
}  // namespace olrank

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails instead, and is reported
  try {
    const int code = olrank::run_program(argc, argv);
    // A full disk or a closed pipe may show only when the last of stdout is flushed.
    if (std::fflush(stdout) != 0) throw olrank::IoError("write", "standard output", errno);
    return code;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr,
               "olrank: The memory is exhausted: the input or the settings need more than this process can "
               "have.\n");
    return static_cast<int>(olrank::ExitCode::kFailed);
  } catch (const std::exception& error) {
    fmt::print(stderr, "olrank: {}\n", error.what());
    return static_cast<int>(olrank::exit_code_of(error));
  }
}
