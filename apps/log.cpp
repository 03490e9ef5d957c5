#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/error.h"
#include "core/io/json.h"
#include "core/io/standard_output.h"
#include "core/settings/choice.h"
#include "core/settings/enum_names.h"
#include "core/text/message_text.h"
#include "logs/log_view.h"
#include "serve/list_import.h"

namespace olrank {
namespace {

constexpr const char* kLogMeaning =
    "feedback.jsonl of a service or its state folder, whether or not it runs, or a trace of a trial";

void require_log(const std::string& log) {
  if (log.empty())
    throw InvalidArgument("--log is required: name a log of shown lists or a service's state folder.");
}

void require_rounds(std::optional<std::uint64_t> from, std::optional<std::uint64_t> to) {
  if (from && to && *from > *to)
    throw InvalidArgument(
        fmt::format("--from-round {} is after --to-round {}: give the earlier one first.", *from, *to));
}

class LogShowCommand : public Command {
 public:
  std::string name() const override { return "show"; }
  std::string summary() const override { return "print lists of a log, clicked documents with a *"; }
  void declare(CLI::App& app) override {
    app.add_option("--log", log_, kLogMeaning)->type_name("FILE");
    app.add_option("--from-round", filter_.from_round, "first round [default: the log's]")->type_name("N");
    app.add_option("--to-round", filter_.to_round, "last round [default: the log's]")->type_name("N");
    app.add_option("--query", filter_.query, "only lists of this query")->type_name("Q");
    app.add_option("--impression", filter_.impression, "only the list of this impression")->type_name("I");
    app.add_option("--clicked", filter_.clicked, "only lists with clicks (true), or without (false)")
        ->type_name("true|false");
    app.add_option("--limit", filter_.limit, "number of lists at most [default: all]")->type_name("N");
  }
  int run(const OutputFlags& output) override {
    require_log(log_);
    require_rounds(filter_.from_round, filter_.to_round);
    if (filter_.limit && *filter_.limit < 1)
      throw InvalidArgument(fmt::format("--limit must be at least 1, not {}.", *filter_.limit));
    show_log(log_, filter_, output.form(), write_output);
    return 0;
  }

 private:
  std::string log_;
  LogFilter filter_;
};

class LogStatsCommand : public Command {
 public:
  std::string name() const override { return "stats"; }
  std::string summary() const override {
    return "count what a log holds: lists, clicks by rank, incumbents";
  }
  void declare(CLI::App& app) override { app.add_option("--log", log_, kLogMeaning)->type_name("FILE"); }
  int run(const OutputFlags& output) override {
    require_log(log_);
    const nlohmann::ordered_json statistics = log_statistics(log_);
    write_output(output.json ? dump_json(statistics, 2) + "\n"
                             : log_statistics_text(statistics, output.columns()));
    return 0;
  }

 private:
  std::string log_;
};

class LogCutCommand : public Command {
 public:
  std::string name() const override { return "cut"; }
  std::string summary() const override {
    return "take a stopped service back to a round, or copy rounds of a log";
  }
  void declare(CLI::App& app) override {
    app.add_option("--state", state_,
                   "state folder of a stopped service: records after --to-round move to a file beside its "
                   "log, and a checkpoint that has learned them is set aside")
        ->type_name("DIR");
    app.add_option("--to-round", to_, "last round that stays, or that is copied")->type_name("N");
    app.add_flag("--dry-run", dry_run_, "say what would be moved, and change nothing");
    app.add_option("--log", log_, "log to copy from, instead of --state")->type_name("FILE");
    app.add_option("--from-round", from_, "first round that is copied [default: 1]")->type_name("N");
    app.add_option("--out", out_, "file for the copied rounds, which are numbered from 1")
        ->type_name("FILE");
  }
  int run(const OutputFlags& output) override {
    if (state_.empty() == log_.empty())
      throw InvalidArgument(
          "Either --state or --log is required: a service to take back, or a log to copy "
          "rounds from.");
    return state_.empty() ? copy(output) : cut(output);
  }

 private:
  int cut(const OutputFlags& output) const {
    if (from_ || !out_.empty())
      throw InvalidArgument("--from-round and --out are for copies: name the log with --log.");
    if (!to_) throw InvalidArgument("--to-round is required: name the last round that stays.");
    ::umask(077);  // as a service writes its files
    const LogCut cut = cut_log(state_, *to_, dry_run_);
    const auto path = [](const std::filesystem::path& file) {
      return file.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(file.string());
    };
    if (output.json) {
      write_output(dump_json({{"to_round", cut.to_round},
                              {"dry_run", dry_run_},
                              {"records", cut.records},
                              {"bytes", cut.bytes},
                              {"moved_to", path(cut.moved_to)},
                              {"checkpoint_moved_to", path(cut.checkpoint_moved_to)}},
                             2) +
                   "\n");
      return 0;
    }
    const char* verb = dry_run_ ? "Would move" : "Moved";
    std::string text =
        cut.moved_to.empty()
            ? fmt::format("No record follows round {}.\n", cut.to_round)
            : fmt::format("{} {} ({}) after round {} to {}\n", verb, counted(cut.records, "record"),
                          counted(cut.bytes, "byte"), cut.to_round, cut.moved_to.string());
    if (cut.checkpoint_round)
      text += fmt::format("{} the checkpoint of round {} to {}\n", verb, *cut.checkpoint_round,
                          cut.checkpoint_moved_to.string());
    write_output(text);
    return 0;
  }

  int copy(const OutputFlags& output) const {
    if (out_.empty()) throw InvalidArgument("--out is required: name a file for the copied rounds.");
    if (dry_run_) throw InvalidArgument("--dry-run is for --state: a copy changes nothing that exists.");
    require_rounds(from_, to_);
    const std::uint64_t copied = copy_rounds(log_, from_.value_or(1), to_, out_);
    write_output(output.json ? dump_json({{"out", out_}, {"records", copied}}, 2) + "\n"
                             : fmt::format("Wrote {}: {}\n", out_, counted(copied, "record")));
    return 0;
  }

  std::string state_;
  std::optional<std::uint64_t> to_;
  bool dry_run_ = false;
  std::string log_;
  std::optional<std::uint64_t> from_;
  std::string out_;
};

class LogImportCommand : public Command {
 public:
  std::string name() const override { return "import"; }
  std::string summary() const override {
    return "make a log of lists and clicks that another program has recorded";
  }
  void declare(CLI::App& app) override {
    app.add_option("--from", from_, "file with the lists; of ubi, with its queries")->type_name("FILE");
    app.add_option(
           "--format", format_text_,
           "jsonl ({\"query\", \"docs\", \"clicks\"} a line), csv (a row for each shown document), ubi "
           "(OpenSearch's User Behavior Insights) or letor (grades above 0 are clicks, and lists are in "
           "the "
           "order in which they were shown)")
        ->type_name("NAME");
    app.add_option("--events", events_, "file with the events of ubi")->type_name("FILE");
    app.add_option("--action", actions_, "events of ubi that count as clicks [default: click]")
        ->type_name("NAME");
    app.add_option("--features", features_,
                   "features of documents: csv with query, doc and a column for each feature, or JSON "
                   "lines {\"query\", \"doc\", \"features\"}; an entry without a query holds for all "
                   "queries; letor has features in its lists")
        ->type_name("FILE");
    app.add_option("--columns", columns_,
                   "names of the columns for list, query, doc, rank, clicked and time in csv files, such "
                   "as doc=sku,… [default: these names]")
        ->type_name("NAMES");
    app.add_option("--first-rank", first_rank_,
                   "number of the first rank in the file [default: 0 of jsonl, 1 of csv and ubi]")
        ->type_name("0|1");
    app.add_option("--normalise", request_.normalise,
                   "query-minmax or none; other kinds come with a model [default: the model's, or "
                   "query-minmax]")
        ->type_name("KIND");
    app.add_option("--model", request_.model, "model that the features are normalised for")
        ->type_name("FILE");
    app.add_flag("--skip-missing", request_.skip_missing,
                 "leave out documents without features; those below them move up by one rank");
    app.add_option("--out", out_, "the log to write, outside of services' state folders")
        ->type_name("FILE");
    app.add_flag("--force", request_.force, "overwrite the file");
  }
  int run(const OutputFlags& output) override {
    for (const auto& [flag, value] :
         {std::pair("--from", &from_), std::pair("--format", &format_text_), std::pair("--out", &out_)}) {
      if (value->empty()) throw InvalidArgument(fmt::format("{} is required. See its --help.", flag));
    }
    if (first_rank_ && (*first_rank_ < 0 || *first_rank_ > 1))
      throw InvalidArgument(fmt::format("--first-rank must be 0 or 1, not {}.", *first_rank_));
    ShownListSource& source = request_.source;
    source.format = parse_choice<ShownListFormat>("--format", format_text_);
    const bool letor = source.format == ShownListFormat::kLetor;
    if (letor != features_.empty())
      throw InvalidArgument(letor ? "--features is for other formats: letor has features in its lists."
                                  : "--features is required. See its --help.");
    const bool ubi = source.format == ShownListFormat::kUbi;
    if (ubi == events_.empty())
      throw InvalidArgument(
          ubi ? "--format ubi requires --events, a file with the events."
              : "--events is for --format ubi: its other formats have clicks in their lists.");
    source.lists = from_;
    source.events = events_;
    if (!actions_.empty()) source.actions = actions_;
    source.columns = ColumnNames::parse(columns_);
    source.first_rank = first_rank_.value_or(source.format == ShownListFormat::kJsonLines ? 0 : 1);
    request_.features = features_;
    request_.out = out_;
    const ListImportResult result = import_lists(request_);
    write_output(output.json ? dump_json(list_import_json(request_, result), 2) + "\n"
                             : list_import_text(request_, result));
    return 0;
  }

 private:
  std::string from_;
  std::string format_text_;
  std::string events_;
  std::vector<std::string> actions_;
  std::string features_;
  std::string columns_;
  std::optional<std::int64_t> first_rank_;
  std::string out_;
  ListImport request_;
};

}  // namespace

std::unique_ptr<Command> make_log_command() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<LogShowCommand>());
  commands.push_back(std::make_unique<LogStatsCommand>());
  commands.push_back(std::make_unique<LogCutCommand>());
  commands.push_back(std::make_unique<LogImportCommand>());
  return std::make_unique<CommandGroup>("log", "read, cut and import logs of shown lists and clicks",
                                        "No subcommand given. See 'olrank log --help'.",
                                        std::move(commands));
}

}  // namespace olrank
