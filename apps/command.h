#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/interface.h"
#include "core/text/text_table.h"

namespace olrank {

/// The flags that every command has, and the whole command line.
struct OutputFlags {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool wide = false;
  std::string command_line;  // quoted for a shell

  /// The columns that tables on standard output may take; 0 is no limit.
  int columns() const;
  OutputForm form() const { return {json, columns()}; }
  /// Prints a result, as JSON or as text. Returns the exit code 0.
  int print(const nlohmann::ordered_json& result, std::string_view text) const;
};

/// One subcommand: declares its flags, then runs and returns the process's exit code.
class Command : public Interface {
 public:
  virtual void declare(CLI::App& app) = 0;
  virtual int run(const OutputFlags& output) = 0;
};

/// The name, summary and maker of a command, known before it is made.
struct CommandEntry {
  const char* path;  // "run"; "data split" is a command of "data"
  const char* summary;
  std::unique_ptr<Command> (*make)();  // null for "data", which only has other commands
};

template <class T>
std::unique_ptr<Command> make_command() {
  return std::make_unique<T>();
}

extern const CommandEntry kBenchCovarianceCommand, kBenchDataCommand, kBenchGeneralisationCommand,
    kBenchOpsCommand, kBenchRoundCommand, kClicksFitCommand, kDataConvertCommand, kDataInspectCommand,
    kDataSplitCommand, kDataSynthCommand, kDemoCommand, kEvalCommand, kExportCommand, kInfoCommand,
    kLogBackupCommand, kLogCompactCommand, kLogCutCommand, kLogImportCommand, kLogShowCommand,
    kLogStatsCommand, kOpeCommand, kRankCommand, kRecommendEvalCommand, kRecommendExplainCommand,
    kRecommendInterviewCommand, kRecommendRankCommand, kRecommendStudyCommand, kRecommendSynthCommand,
    kRecommendTrainCommand, kReportCommand, kRunCommand, kServeCommand, kTrainCommand, kTuneCommand;

/// The commands of a program, with their flags declared in it.
class Commands {
 public:
  explicit Commands(CLI::App& program);

  /// The command that was given, "split" in "data split". Throws InvalidArgument where "data" stands alone.
  Command& given() const;

 private:
  struct Declared {
    const CommandEntry* entry;
    std::unique_ptr<Command> command;
    CLI::App* app;
  };
  std::vector<Declared> commands_;  // each behind the one whose command it is
};

template <class T>
constexpr bool kIsCount = std::is_unsigned_v<T> && !std::is_same_v<T, bool>;
template <class T>
constexpr bool kIsCount<std::optional<T>> = kIsCount<T>;

/// Refuses a negative number, which CLI11 would wrap around.
std::string refuse_negative(const std::string& text);

/// A flag or argument with a value, which --help names `type`.
template <class T>
CLI::Option* add_option(CLI::App& app, const char* name, T& value, const char* type,
                        const std::string& help) {
  CLI::Option* option = app.add_option(name, value, help)->type_name(type);
  if constexpr (kIsCount<T>) option->check(refuse_negative);
  return option;
}

/// Prints a result that has one form. Returns the exit code 0.
int printed(std::string_view text);
/// The exit code of a command that a signal has stopped, and that --resume continues.
int stopped_by_signal();
/// Flags that several commands have.
void add_threads(CLI::App& app, int& threads);
void add_trust_code(CLI::App& app, bool& trust);
/// A flag or argument with a file or folder that the command writes; - is standard output. Those in the
/// state folder of a service are refused.
CLI::Option* add_output(CLI::App& app, const char* name, std::string& path, const char* type,
                        const std::string& help);

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
