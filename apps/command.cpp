#include "apps/command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/throw_error.h"
#include "serve/state_folder.h"

namespace olrank {

namespace {

const CommandEntry kDataCommands{"data", "inspect, convert, generate or split data sets", nullptr};
const CommandEntry kBenchCommands{
    "bench", "benchmarks: full covariance against its approximations, and the cost of every operation",
    nullptr};
const CommandEntry kRecommendCommands{"recommend", "recommend items from reviews, and say why", nullptr};
const CommandEntry kClicksCommands{"clicks", "learn from a log how users read lists", nullptr};
const CommandEntry kLogCommands{"log", "read, cut, copy and import logs of shown lists and clicks",
                                nullptr};

/// In the order of --help.
constexpr std::array kCommands = {&kRunCommand,
                                  &kTrainCommand,
                                  &kTuneCommand,
                                  &kBenchCommands,
                                  &kBenchCovarianceCommand,
                                  &kBenchOpsCommand,
                                  &kBenchRoundCommand,
                                  &kBenchDataCommand,
                                  &kBenchGeneralisationCommand,
                                  &kReportCommand,
                                  &kDataCommands,
                                  &kDataInspectCommand,
                                  &kDataConvertCommand,
                                  &kDataSynthCommand,
                                  &kDataSplitCommand,
                                  &kEvalCommand,
                                  &kOpeCommand,
                                  &kClicksCommands,
                                  &kClicksFitCommand,
                                  &kRankCommand,
                                  &kExportCommand,
                                  &kRecommendCommands,
                                  &kRecommendSynthCommand,
                                  &kRecommendTrainCommand,
                                  &kRecommendRankCommand,
                                  &kRecommendExplainCommand,
                                  &kRecommendInterviewCommand,
                                  &kRecommendEvalCommand,
                                  &kRecommendStudyCommand,
                                  &kServeCommand,
                                  &kDemoCommand,
                                  &kLogCommands,
                                  &kLogShowCommand,
                                  &kLogStatsCommand,
                                  &kLogCutCommand,
                                  &kLogBackupCommand,
                                  &kLogCompactCommand,
                                  &kLogImportCommand,
                                  &kInfoCommand};

}  // namespace

int OutputFlags::columns() const {
  return wide ? 0 : terminal_columns(STDOUT_FILENO);
}

void OutputFlags::print(const nlohmann::ordered_json& result, std::string_view text) const {
  write_output(json ? dump_json(result, 2) + "\n" : text);
}

std::string refuse_negative(const std::string& text) {
  return text.find('-') == std::string::npos ? "" : "It must be a whole number from 0, not " + text + ".";
}

int stopped_by_signal() {
  log_info("Stopped by a signal; run the same command with --resume to continue.");
  return InterruptGuard::exit_code(InterruptGuard::requested());
}

void add_threads(CLI::App& app, int& threads) {
  add_option(app, "--threads", threads, "N", "CPU threads; 0 uses every core [default: 0]")
      ->check(CLI::Range(0, 4096));
}

void add_trust_code(CLI::App& app, bool& trust) {
  add_option(app, "--trust-code", trust, "true|false",
             "whether the model may contain a TorchScript module, whose code can read and write your files "
             "[default: false]");
}

CLI::Option* add_output(CLI::App& app, const char* name, std::string& path, const char* type,
                        const std::string& help) {
  const auto refuse = [name](const std::string& given) {
    if (!given.empty() && given != "-") require_outside_state(given, name);
    return std::string();
  };
  return add_option(app, name, path, type, help)->check(refuse);
}

Commands::Commands(CLI::App& program) {
  for (const CommandEntry* entry : kCommands) {
    const std::string path = entry->path;
    const std::size_t blank = path.find(' ');
    CLI::App* above = blank == std::string::npos ? &program : program.get_subcommand(path.substr(0, blank));
    CLI::App* app = above->add_subcommand(path.substr(blank + 1), entry->summary);
    app->fallthrough();
    app->allow_extras();
    if (entry->make == nullptr) app->require_subcommand(0, 1);
    commands_.push_back({entry, entry->make == nullptr ? nullptr : entry->make(), app});
    if (entry->make != nullptr) commands_.back().command->declare(*app);
  }
}

Command& Commands::given() const {
  const auto last = std::find_if(commands_.rbegin(), commands_.rend(),
                                 [](const Declared& declared) { return declared.app->parsed(); });
  if (last == commands_.rend()) throw InvalidArgument("No command given. See 'olrank --help'.");
  if (last->command == nullptr)
    throw_error<InvalidArgument>("No subcommand given. See 'olrank {} --help'.", last->entry->path);
  return *last->command;
}

}  // namespace olrank
