#include <fmt/format.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/data/data_files.h"
#include "core/data/data_loader.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "logs/click_report.h"
#include "logs/log_view.h"
#include "logs/off_policy.h"
#include "serve/feature_schema.h"
#include "serve/list_import.h"
#include "serve/own_file.h"
#include "serve/service_identity.h"
#include "serve/state_folder.h"

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
    throw_error<InvalidArgument>("--from-round {} is after --to-round {}: give the earlier one first.",
                                 *from, *to);
}

class LogShowCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--log", log_, "FILE", kLogMeaning);
    add_option(app, "--from-round", filter_.from_round, "N", "first round [default: the log's]");
    add_option(app, "--to-round", filter_.to_round, "N", "last round [default: the log's]");
    add_option(app, "--query", filter_.query, "Q", "only lists of this query");
    add_option(app, "--impression", filter_.impression, "I", "only the list of this impression");
    add_option(app, "--clicked", filter_.clicked, "true|false",
               "only lists with clicks (true), or without (false)");
    add_option(app, "--limit", filter_.limit, "N", "number of lists at most [default: all]");
  }
  int run(const OutputFlags& output) override {
    require_log(log_);
    require_rounds(filter_.from_round, filter_.to_round);
    if (filter_.limit && *filter_.limit < 1)
      throw_error<InvalidArgument>("--limit must be at least 1, not {}.", *filter_.limit);
    show_log(log_, filter_, output.form(), write_output);
    return 0;
  }

 private:
  std::string log_;
  LogFilter filter_;
};

class LogStatsCommand : public Command {
 public:
  void declare(CLI::App& app) override { add_option(app, "--log", log_, "FILE", kLogMeaning); }
  int run(const OutputFlags& output) override {
    require_log(log_);
    const nlohmann::ordered_json statistics = log_statistics(log_);
    return output.print(statistics, log_statistics_text(statistics, output.columns()));
  }

 private:
  std::string log_;
};

class LogCutCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--state", state_, "DIR",
               "state folder of a stopped service: records after --to-round move to a file beside its "
               "log, and a checkpoint that has learned them is set aside");
    add_option(app, "--to-round", to_, "N", "last round that stays, or that is copied");
    app.add_flag("--dry-run", dry_run_, "say what would be moved, and change nothing");
    add_option(app, "--log", log_, "FILE", "log to copy from, instead of --state");
    add_option(app, "--from-round", from_, "N", "first round that is copied [default: 1]");
    add_option(app, "--out", out_, "FILE", "file for the copied rounds, which are numbered from 1");
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
    const char* verb = dry_run_ ? "Would move" : "Moved";
    std::string text =
        cut.moved_to.empty()
            ? fmt::format("No record follows round {}.\n", cut.to_round)
            : fmt::format("{} {} ({}) after round {} to {}\n", verb, counted(cut.records, "record"),
                          counted(cut.bytes, "byte"), cut.to_round, cut.moved_to.string());
    if (cut.checkpoint_round)
      text += fmt::format("{} the checkpoint of round {} to {}\n", verb, *cut.checkpoint_round,
                          cut.checkpoint_moved_to.string());
    return output.print({{"to_round", cut.to_round},
                         {"dry_run", dry_run_},
                         {"records", cut.records},
                         {"bytes", cut.bytes},
                         {"moved_to", path(cut.moved_to)},
                         {"checkpoint_moved_to", path(cut.checkpoint_moved_to)}},
                        text);
  }

  int copy(const OutputFlags& output) const {
    if (out_.empty()) throw InvalidArgument("--out is required: name a file for the copied rounds.");
    if (dry_run_) throw InvalidArgument("--dry-run is for --state: a copy changes nothing that exists.");
    require_rounds(from_, to_);
    const std::uint64_t copied = copy_rounds(log_, from_.value_or(1), to_, out_);
    return output.print({{"out", out_}, {"records", copied}},
                        fmt::format("Wrote {}: {}\n", out_, counted(copied, "record")));
  }

  std::string state_;
  std::optional<std::uint64_t> to_;
  bool dry_run_ = false;
  std::string log_;
  std::optional<std::uint64_t> from_;
  std::string out_;
};

class LogBackupCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--state", state_, "DIR", "state folder of a service, which may run");
    add_option(app, "--out", out_, "DIR", "folder for the copy; an earlier copy there gets what it lacks");
  }
  int run(const OutputFlags& output) override {
    if (state_.empty()) throw InvalidArgument("--state is required: name the folder of a service.");
    if (out_.empty()) throw InvalidArgument("--out is required: name a folder for the copy.");
    ::umask(077);  // as a service writes its files
    const StateBackup backup = back_up_state(state_, out_);
    return output.print(
        {{"out", out_},
         {"records", backup.records},
         {"new_records", backup.new_records},
         {"bytes", backup.bytes}},
        fmt::format("{} has {}, of which {} new (wrote {})\n", out_, counted(backup.records, "record"),
                    fmt::format("{} {}", backup.new_records, backup.new_records == 1 ? "is" : "are"),
                    readable_bytes(static_cast<double>(backup.bytes))));
  }

 private:
  std::string state_;
  std::string out_;
};

class LogCompactCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--state", state_, "DIR",
               "state folder of a stopped service, whose log and documents are compressed; a running one "
               "does so by itself");
  }
  int run(const OutputFlags& output) override {
    if (state_.empty()) throw InvalidArgument("--state is required: name the folder of a service.");
    ::umask(077);  // as a service writes its files
    const LogCompaction done = compact_log(state_);
    return output.print(
        {{"records", done.records}, {"bytes_before", done.bytes_before}, {"bytes", done.bytes}},
        fmt::format("{} takes {} for {} (before: {})\n", state_,
                    readable_bytes(static_cast<double>(done.bytes)), counted(done.records, "record"),
                    readable_bytes(static_cast<double>(done.bytes_before))));
  }

 private:
  std::string state_;
};

class LogImportCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--from", from_, "FILE", "file with the lists; of ubi, with its queries");
    add_option(
        app, "--format", format_text_, "NAME",
        "jsonl ({\"query\", \"docs\", \"clicks\"} a line), csv (a row for each shown document), ubi "
        "(OpenSearch's User Behavior Insights) or letor (grades above 0 are clicks, and lists are in "
        "the "
        "order in which they were shown)");
    add_option(app, "--events", events_, "FILE", "file with the events of ubi");
    add_option(app, "--action", actions_, "NAME", "events of ubi that count as clicks [default: click]");
    add_option(app, "--features", features_, "FILE",
               "features of documents: csv with query, doc and a column for each feature, or JSON "
               "lines {\"query\", \"doc\", \"features\"}; an entry without a query holds for all "
               "queries; letor has features in its lists");
    add_option(app, "--columns", columns_, "NAMES",
               "names of the columns for list, query, doc, rank, clicked and time in csv files, such "
               "as doc=sku,… [default: these names]");
    add_option(app, "--first-rank", first_rank_, "0|1",
               "number of the first rank in the file [default: 0 of jsonl, 1 of csv and ubi]");
    add_option(app, "--normalise", request_.normalise, "KIND",
               "query-minmax or none; other kinds come with a model [default: the model's, or "
               "query-minmax]");
    add_option(app, "--model", request_.model, "FILE", "model that the features are normalised for");
    app.add_flag("--skip-missing", request_.skip_missing,
                 "leave out documents without features; those below them move up by one rank");
    add_option(app, "--out", out_, "FILE", "the log to write, outside of services' state folders");
    app.add_flag("--force", request_.force, "overwrite the file");
  }
  int run(const OutputFlags& output) override {
    for (const auto& [flag, value] :
         {std::pair("--from", &from_), std::pair("--format", &format_text_), std::pair("--out", &out_)}) {
      if (value->empty()) throw_error<InvalidArgument>("{} is required. See its --help.", flag);
    }
    if (first_rank_ && (*first_rank_ < 0 || *first_rank_ > 1))
      throw_error<InvalidArgument>("--first-rank must be 0 or 1, not {}.", *first_rank_);
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
    return output.print(list_import_json(request_, result), list_import_text(request_, result));
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

class ClicksFitCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--log", request_.log.log, "FILE",
               "feedback.jsonl of a service or its state folder, a trace of a trial, or recorded feedback");
    add_option(app, "--model", model_text_, "pbm|cascade|dcm|dbn|ubm|two-tower|trust|all",
               "click model to fit in addition to click rates by rank [default: all that the log has "
               "the data for]");
    add_option(app, "--holdout", request_.log.holdout, "P",
               "share of lists, chosen by hash, that judge the models [default: 0.2]");
    add_option(app, "--at", request_.log.ranks, "K", "ranks that count [default: 100]");
    add_option(app, "--iterations", request_.fit.iterations, "N",
               "largest number of steps of expectation maximisation [default: 100]");
    add_output(app, "--out", out_, "FILE", "file for the results as JSON");
  }

  int run(const OutputFlags& output) override {
    request_.choose(model_text_);
    request_.check();
    // A file that cannot be written is found out about before the fit.
    std::optional<AtomicFile> file;
    if (!out_.empty()) file.emplace(out_);
    const ClickReport report = report_clicks(request_);
    const std::string json = dump_json(click_report_json(request_, report), 2) + "\n";
    write_output(output.json ? json : click_report_text(report, output.columns()));
    if (file) {
      file->write(json);
      file->commit();
    }
    return 0;
  }

 private:
  ClickReportRequest request_;
  std::string model_text_ = "all";
  std::string out_;
};

class OpeCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--log", request_.log, "FILE",
               "feedback.jsonl of a service or its state folder, or a trace of a trial");
    add_option(app, "--model", request_.models, "MODEL", "model files or folders of finished trials");
    add_trust_code(app, request_.trust_code);
    add_option(app, "--policy", names_.policy, "NAME",
               "how the lists are made: greedy, plackett-luce or epsilon=0.1 by the models' scores, "
               "incumbent in the order that requests brought, or candidate as the learner would have "
               "shown them [default: greedy]");
    add_option(app, "--reward", names_.reward, "NAME",
               "the value of a list's clicks: clicks, dcg (discounted by rank), "
               "first-click, or weight (by the values of their events) [default: clicks]");
    add_option(app, "--estimators", names_.estimators, "NAMES",
               "estimators to use, such as direct,cascade-dr [default: all that the log has the data for]")
        ->delimiter(',');
    add_option(app, "--click-model", names_.click_model, "NAME",
               "click model of direct, cascade-dr and intervention-aware, which is fitted to the log: "
               "pbm, cascade, dcm, dbn, ubm, two-tower or trust [default: pbm]");
    add_output(app, "--page", page_, "FILE", "file for an HTML page with the estimates side by side");
    at_ = add_option(app, "--at", request_.estimates.ranks, "K", "ranks that count [default: 10]");
    add_option(app, "--data", data_.source, "SOURCE",
               "data set that the documents of a trace refer to, as in run --data");
    add_option(app, "--fold", fold_, "N", "fold of a data folder [default: 1]");
    add_option(app, "--part", part_text_, "PART", "part of the data: train, vali or test [default: train]");
    add_option(app, "--cache", data_.cache, "DIR", kCacheHelp);
    add_option(app, "--clip", request_.estimates.clip, "W",
               "largest weight; a larger weight counts as W, which bounds the estimate and biases it "
               "towards 0 [default: none]");
    add_option(app, "--confidence", request_.estimates.confidence, "P",
               "confidence of the intervals [default: 0.95]");
    add_option(app, "--replicates", request_.estimates.replicates, "N",
               "replicates of the bootstrap over queries [default: 400]");
    add_option(app, "--seed", request_.estimates.seed, "N", "random seed of the bootstrap [default: 1]");
    add_threads(app, threads_);
  }

  int run(const OutputFlags& output) override {
    request_.choose(names_);
    request_.check();
    // A file that cannot be written is found out about before the log is read.
    std::optional<AtomicFile> page;
    if (!page_.empty()) page.emplace(page_);
    ExecutionContext context(threads_ > 0 ? threads_ : available_threads());
    std::optional<Dataset> data;
    data_.layout = FeatureLayout::kDense;
    if (!data_.source.empty())
      data.emplace(load_part(data_, fold_, parse_choice<DataPart>("--part", part_text_), context));
    request_.of_log = features_of_log();
    const OffPolicyResult result = evaluate_off_policy(request_, data ? &*data : nullptr, context);
    if (at_->count() > 0 && result.longest < request_.estimates.ranks) {
      throw_error<InvalidArgument>("--at {} is beyond the lists of {}, which have at most {}.",
                                   request_.estimates.ranks, request_.log, counted(result.longest, "rank"));
    }
    output.print(off_policy_json(request_, result), off_policy_text(request_, result, output.columns()));
    if (page) {
      page->write(off_policy_page(request_, result));
      page->commit();
    }
    return 0;
  }

 private:
  /// Says which features the schema of the log's service has dropped and renamed.
  NamedInputs features_of_log() const {
    const std::filesystem::path log(request_.log);
    const std::filesystem::path file = (is_directory(log) ? log : log.parent_path()) / "service.toml";
    const auto text = read_own_file(file);
    if (!text) return {};
    const ServiceIdentity stored = parse_identity(*text, file.string());
    if (stored.feature_schema.empty()) return {};
    NamedInputs inputs = FeatureSchema::parse(stored.feature_schema, file.string()).named_columns();
    inputs.defaults.clear();  // those of a model are its own
    return inputs;
  }

  OffPolicyRequest request_;
  CLI::Option* at_ = nullptr;
  OffPolicyNames names_;
  std::string page_;
  DataSettings data_;
  std::int64_t fold_ = 1;
  std::string part_text_ = "train";
  int threads_ = 0;
};

}  // namespace

const CommandEntry kLogShowCommand{"log show", "print lists of a log, clicked documents with a *",
                                   make_command<LogShowCommand>};
const CommandEntry kLogStatsCommand{"log stats",
                                    "count what a log holds: lists, clicks by rank, incumbents",
                                    make_command<LogStatsCommand>};
const CommandEntry kLogCutCommand{"log cut",
                                  "take a stopped service back to a round, or copy rounds of a log",
                                  make_command<LogCutCommand>};
const CommandEntry kLogBackupCommand{"log backup", "copy the state of a running service",
                                     make_command<LogBackupCommand>};
const CommandEntry kLogCompactCommand{"log compact", "compress the log of a stopped service",
                                      make_command<LogCompactCommand>};
const CommandEntry kLogImportCommand{"log import",
                                     "make a log of lists and clicks that another program has recorded",
                                     make_command<LogImportCommand>};

const CommandEntry kClicksFitCommand{"clicks fit", "fit click models to a log of shown lists",
                                     make_command<ClicksFitCommand>};

const CommandEntry kOpeCommand{"ope", "estimate the reward of other rankers from a log of shown lists",
                               make_command<OpeCommand>};

}  // namespace olrank
