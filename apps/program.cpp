#include "apps/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "core/version.h"

namespace olrank {

namespace {

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

constexpr std::array kProgressStyles = {
    std::pair{"bar", ProgressStyle::kBar}, std::pair{"lines", ProgressStyle::kLines},
    std::pair{"json", ProgressStyle::kJson}, std::pair{"none", ProgressStyle::kSilent}};

/// "auto" leaves the style that fits stderr.
void choose_progress(const std::string& name) {
  std::vector<std::string> known = {"auto"};
  for (const auto& [word, style] : kProgressStyles) {
    known.emplace_back(word);
    if (name != word) continue;
    if (style == ProgressStyle::kJson) set_log_form(LogForm::kJson);
    return set_progress_style(style);
  }
  if (name != known.front()) throw InvalidArgument("--progress " + must_be_one_of(name, known));
}

int run_checked(int argc, char** argv) {
  CLI::App program("olrank learns to rank online, from clicks, and knows which orders it is certain of.",
                   "olrank");
  program.formatter(std::make_shared<HelpFormatter>(help_columns()));  // subcommands inherit it
  program.set_help_flag("-h,--help", "print this help and exit");      // subcommands inherit it
  OutputFlags output;
  output.command_line = command_line(argc, argv);
  // Subcommands inherit these flags, so they work before and after the command's name.
  program.add_flag("--json", output.json, "print JSON instead of tables");
  auto* quiet =
      program.add_flag("--quiet", output.quiet, "print only warnings and errors to stderr, no progress");
  program.add_flag("--verbose", output.verbose, "print details to stderr")->excludes(quiet);
  std::string progress = "auto";
  std::string log_file;
  program
      .add_option("--progress", progress,
                  "progress on stderr: bar, lines, json (one object for each event, docs/CONTRACTS.md), "
                  "none, or auto: a bar on a terminal, else lines [default: auto]")
      ->type_name("STYLE");
  add_output(program, "--log", log_file, "FILE",
             "append what is logged to FILE, with times; unaffected by --quiet");
  program.add_flag("--wide", output.wide, "do not fit tables to the width of the terminal");
  bool show_version = false;
  program.add_flag("--version", show_version, "print the version and exit");
  program.fallthrough();
  program.allow_extras();

  const Commands commands(program);
  program.require_subcommand(0, 1);

  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (!arguments.empty() && arguments.front() == "help") {  // "olrank help run" is "olrank run --help"
      arguments.erase(arguments.begin());
      arguments.emplace_back("--help");
    }
    refuse_flags_as_values(program, arguments);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    program.parse(std::move(arguments));
  } catch (const CLI::CallForHelp& help) {
    std::ostringstream text;
    const int code = program.exit(help, text, text);
    write_output(text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    throw_error<InvalidArgument>("{} See 'olrank --help'.", usage_sentence(error));
  }

  if (output.quiet) set_verbosity(Verbosity::kQuiet);
  if (output.verbose) set_verbosity(Verbosity::kVerbose);
  choose_progress(progress);
  const std::vector<CLI::App*> given = program.get_subcommands();
  refuse_unknown(program, given.empty() ? nullptr : given.front());
  if (given.empty() && show_version) {
    fmt::print("olrank {} ({})\n", version(), revision());
    return 0;
  }
  Command& command = commands.given();
  if (!log_file.empty()) {
    open_log_file(log_file);
    log_to_file(output.command_line);
  }
  try {
    return command.run(output);
  } catch (const std::filesystem::filesystem_error& error) {
    throw IoError("read", error.path1().string(), error.code().value());
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails instead, and is reported
  const auto failed = [](std::string_view message, ExitCode code = ExitCode::kFailed) {
    log_error(message, static_cast<int>(code));
    return static_cast<int>(code);
  };
  try {
    const int code = run_checked(argc, argv);
    // A full disk or a closed pipe may show only when the last of stdout is flushed.
    flush_output();
    return code;
  } catch (const std::bad_alloc&) {
    return failed(
        "The memory is exhausted: the input or the settings need more than this process can have.");
  } catch (const std::system_error& error) {
    // The error that fmt::print() throws says neither what was written nor to where.
    return failed(std::ferror(stdout) != 0 ? output_error(error.code().value()) : error.what());
  } catch (const std::exception& error) {
    return failed(error.what(), exit_code_of(error));
  }
}

}  // namespace olrank
