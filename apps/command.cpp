#include "apps/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/settings/setting_sources.h"
#include "core/text/message_text.h"
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

template <class... Entries>
constexpr std::array<const CommandEntry*, sizeof...(Entries)> in_order(const Entries&... entries) {
  return {&entries...};
}

/// In the order of --help.
constexpr auto kCommands = in_order(
    kRunCommand, kTrainCommand, kTuneCommand, kBenchCommands, kBenchCovarianceCommand, kBenchOpsCommand,
    kBenchRoundCommand, kBenchDataCommand, kBenchGeneralisationCommand, kReportCommand, kDataCommands,
    kDataInspectCommand, kDataConvertCommand, kDataSynthCommand, kDataSplitCommand, kEvalCommand,
    kOpeCommand, kClicksCommands, kClicksFitCommand, kRankCommand, kExportCommand, kRecommendCommands,
    kRecommendSynthCommand, kRecommendTrainCommand, kRecommendRankCommand, kRecommendExplainCommand,
    kRecommendInterviewCommand, kRecommendEvalCommand, kRecommendStudyCommand, kServeCommand, kDemoCommand,
    kLogCommands, kLogShowCommand, kLogStatsCommand, kLogCutCommand, kLogBackupCommand, kLogCompactCommand,
    kLogImportCommand, kInfoCommand);

/// A name that other programs use, and what it may be called here: the first that the command has.
struct Alias {
  std::string_view name;
  std::array<std::string_view, 2> here;
};

constexpr std::array kFlagAliases = {
    Alias{"--gpu", {"--device cuda"}},
    Alias{"--cuda", {"--device cuda"}},
    Alias{"--cpu", {"--device cpu"}},
    Alias{"--normalize", {"--normalise", "--data-normalise"}},
    Alias{"--normalization", {"--normalise", "--data-normalise"}},
    Alias{"--normalisation", {"--normalise", "--data-normalise"}},
    Alias{"--algo", {"--ranker"}},
    Alias{"--algorithm", {"--ranker"}},
    Alias{"--method", {"--ranker"}},
    Alias{"--kind", {"--ranker"}},
    Alias{"--k", {"--cutoff", "--at"}},
    Alias{"--topk", {"--cutoff", "--at"}},
    Alias{"--top-k", {"--cutoff", "--at"}},
    Alias{"--lr", {"--learning-rate"}},
    Alias{"--iterations", {"--rounds"}},
    Alias{"--impressions", {"--rounds"}},
    Alias{"--dataset", {"--data"}},
    Alias{"--output", {"--out"}},
    Alias{"--output-dir", {"--out"}},
    Alias{"--workers", {"--jobs", "--threads"}},
    Alias{"--hidden", {"--width"}},
    Alias{"--layers", {"--depth"}},
    Alias{"--users", {"--clicks"}},
    Alias{"--click-model", {"--clicks"}},
    Alias{"--config", {"the file as the first argument"}},
};

constexpr std::array kCommandAliases = {Alias{"fit", {"train"}},    Alias{"evaluate", {"eval"}},
                                        Alias{"predict", {"rank"}}, Alias{"score", {"rank"}},
                                        Alias{"plot", {"report"}},  Alias{"benchmark", {"bench"}},
                                        Alias{"version", {"info"}}};

/// Commands of earlier versions, and what replaces them.
constexpr std::array kGoneCommands = {
    std::pair{"olrank man", "gone: 'olrank --help' and 'olrank COMMAND --help' have its texts."},
    std::pair{"olrank completion",
              "gone: 'olrank --help' and 'olrank COMMAND --help' list commands, flags and values."},
    std::pair{"olrank bench scale", "now 'olrank bench round --over n --values 500,1000,2000,4000'."},
    std::pair{"olrank bench long",
              "gone: 'olrank run' writes what its rounds have cost to curve.jsonl, and 'olrank bench round "
              "--over n --retrain growth' measures rounds after n pairs."},
    std::pair{"olrank bench recommend",
              "gone: 'olrank recommend train' writes the entries, pairs and seconds of its training to "
              "summary.json."}};

/// Suggests what `name` may be called here; empty if nothing is close to it.
std::string suggestion(const std::string& name, std::span<const std::string> known,
                       std::span<const Alias> aliases) {
  const auto is_known = [&](std::string_view flag) {
    return !flag.starts_with('-') || std::find(known.begin(), known.end(), flag) != known.end();
  };
  for (const Alias& alias : aliases) {
    if (alias.name != name) continue;
    for (const std::string_view here : alias.here) {
      if (!here.empty() && is_known(here.substr(0, here.find(' ')))) return std::string(here);
    }
  }
  return near_name(name, known);
}

std::string question(const std::string& suggested) {
  return suggested.empty() ? "" : fmt::format(" Did you mean '{}'?", suggested);
}

/// "--port" and "80x" of "Could not convert: --port = 80x".
std::string conversion_sentence(std::string_view message) {
  constexpr std::string_view kBegin = "Could not convert: ";
  constexpr std::string_view kEquals = " = ";
  const std::size_t equals = message.find(kEquals);
  if (!message.starts_with(kBegin) || equals == std::string_view::npos) return std::string(message) + ".";
  const std::string_view flag = message.substr(kBegin.size(), equals - kBegin.size());
  const std::string value(message.substr(equals + kEquals.size()));
  char* end = nullptr;
  std::strtod(value.c_str(), &end);
  const bool is_number = end != value.c_str() && *end == '\0';
  const bool is_whole = value.find_first_not_of("+-0123456789") == std::string::npos;
  return fmt::format("{} must be {}, not '{}'.", flag,
                     !is_number ? "a number"
                     : is_whole ? "a smaller number"
                                : "a whole number",
                     value);
}

constexpr int kWidestHelp = 100;
constexpr int kNarrowestHelp = 48;
constexpr std::int64_t kNames = 30;  // columns in front of the descriptions

}  // namespace

int OutputFlags::columns() const {
  return wide ? 0 : terminal_columns(STDOUT_FILENO);
}

int OutputFlags::print(const nlohmann::ordered_json& result, std::string_view text) const {
  return printed(json ? dump_json(result, 2) + "\n" : text);
}

std::string refuse_negative(const std::string& text) {
  return text.find('-') == std::string::npos ? "" : "It must be a whole number from 0, not " + text + ".";
}

int printed(std::string_view text) {
  write_output(text);
  return 0;
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

void refuse_unknown(const CLI::App& program, const CLI::App* command) {
  const std::vector<std::string> unknown = program.remaining(true);
  if (unknown.empty()) return;
  std::string where = command != nullptr ? "olrank " + command->get_name() : "olrank";
  // For a command group, compare with the flags and names of its subcommand.
  while (command != nullptr && !command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    where += " " + command->get_name();
  }
  const std::string& first = unknown.front();
  std::vector<std::string> known;
  if (first.rfind('-', 0) == 0) {
    for (const CLI::App* app : {command, &program}) {
      if (app == nullptr) continue;
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
    }
    const std::string flag = first.substr(0, first.find('='));
    const std::string of_command =
        where.substr(std::min(where.size(), std::string_view("olrank ").size())) + " " + flag;
    for (const std::string& name : {of_command, flag}) {
      if (const auto dropped = dropped_sentence(name)) throw InvalidArgument(*dropped);
    }
    throw_error<InvalidArgument>("Unknown flag '{}'.{} See '{} --help'.", flag,
                                 question(suggestion(flag, known, kFlagAliases)), where);
  }
  const bool is_group =
      command == nullptr || !command->get_subcommands([](const CLI::App*) { return true; }).empty();
  if (where == "olrank demo")
    throw InvalidArgument(
        "'olrank demo FILE' is gone, and the demo shows invented products: 'olrank run --data FILE' plays "
        "the queries of a file.");
  if (!is_group) {
    throw_error<InvalidArgument>("Unexpected argument '{}'. See '{} --help'.", first, where);
  }
  for (const auto& [name, sentence] : kGoneCommands) {
    if (fmt::format("{} {}", where, first) == name)
      throw_error<InvalidArgument>("'{}' is {}", name, sentence);
  }
  const CLI::App& parent = command != nullptr ? *command : program;
  for (const CLI::App* other : parent.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(other->get_name());
  }
  const auto aliases =
      command == nullptr ? std::span<const Alias>(kCommandAliases) : std::span<const Alias>();
  const std::string suggested = suggestion(first, known, aliases);
  const std::string commands =
      suggested.empty() ? fmt::format(" The commands are {}.", joined(known)) : question(suggested);
  throw_error<InvalidArgument>("Unknown command '{}'.{} See '{} --help'.", first, commands, where);
}

void refuse_flags_as_values(const CLI::App& program, const std::vector<std::string>& arguments) {
  const CLI::App* command = &program;
  const auto option_of = [&](const std::string& word) {
    const std::string flag = word.substr(0, word.find('='));
    const CLI::Option* option = command->get_option_no_throw(flag);
    return option != nullptr ? option : program.get_option_no_throw(flag);
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) {
      const auto named =
          command->get_subcommands([&](const CLI::App* below) { return below->get_name() == word; });
      if (!named.empty()) command = named.front();
      continue;
    }
    const CLI::Option* option = word.find('=') == std::string::npos ? option_of(word) : nullptr;
    if (option == nullptr || option->get_items_expected_min() == 0 || i + 1 == arguments.size()) continue;
    const std::string& next = arguments[i + 1];
    if (next.starts_with("--") && option_of(next) != nullptr)
      throw_error<InvalidArgument>("{} needs a value, but '{}' follows, which is a flag.", word, next);
  }
}

std::string usage_sentence(const CLI::ParseError& error) {
  const std::string message = error.what();
  if (error.get_name() == "ConversionError") return conversion_sentence(message);
  if (error.get_name() == "ArgumentMismatch" && message.ends_with(" missing"))
    return fmt::format("{} needs a value.", message.substr(0, message.find(':')));
  constexpr std::string_view kMostOne = ": At Most 1 required";
  if (const std::size_t at = message.find(kMostOne); at != std::string::npos)
    return fmt::format("{} is given more than once.", message.substr(0, at));
  return message.empty() || message.back() == '.' ? message : message + ".";
}

int help_columns() {
  const int columns = terminal_columns(STDOUT_FILENO);
  return columns == 0 ? kWidestHelp : std::clamp(columns, kNarrowestHelp, kWidestHelp);
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(Formatter::make_description(app), columns_);
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  return wrapped(Formatter::make_usage(app, std::move(name)), columns_, 2);
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return entry(sub->get_display_name(true), sub->get_description());
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return entry(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
}

std::string HelpFormatter::entry(const std::string& name, const std::string& description) const {
  std::string text = wrapped("  " + name, columns_, 6);
  if (description.empty()) return text + "\n";
  const bool own_line = columns_of(name) + 2 >= kNames || text.find('\n') != std::string::npos;
  const std::string blank(kNames, ' ');
  text = own_line ? text + "\n" + blank : padded_right(text, kNames);
  std::string lines = wrapped(description, columns_ - kNames);
  for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += blank.size() + 1)
    lines.insert(at + 1, blank);
  return text + lines + "\n";
}

}  // namespace olrank
