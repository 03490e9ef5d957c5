#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/settings/enum_names.h"
#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/saved_trial.h"
#include "serve/access_log.h"
#include "serve/arms.h"
#include "serve/feature_schema.h"
#include "serve/service_process.h"

namespace olrank {
namespace {

class ServeCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    app_ = &app;
    add_option(app, "--state", options_.state, "DIR", "folder for the state of the service");
    add_option(app, "--surfaces", surfaces_, "FILE",
               "several services in this process, each with a table of its flags and a folder in --state: "
               "[shop-de] features = 20 has the paths /surface/shop-de/v1/rank and so on");
    add_option(app, "--model", request_.model, "FILE",
               "model to start from: a model file or a trial's folder");
    features_ = add_option(app, "--features", request_.features, "D",
                           "features per document; required without --model");
    add_option(
        app, "--feature-names", feature_names_, "A,B,…",
        "names of the features in their order, by which requests and imported logs may give them; "
        "-NAME leaves a feature of an imported log out; NAME=_score, NAME=_source.PATH, NAME=fields.PATH "
        "and NAME=matched:QUERY say where a search answer has one [default: the model's, if it has names]");
    add_option(app, "--schema", schema_, "FILE",
               "features by name, kind, default and transformation (docs/SERVICE.md); with an existing "
               "service, another schema learns its log again [default: as at the last start]");
    add_option(
        app, "--normalise", request_.normalise, "KIND",
        "query-minmax or none; other kinds come with a model [default: the model's, or query-minmax]");
    add_option(app, "--cutoff", request_.cutoff, "K",
               "documents to show if a request does not specify k [default: 10]");
    normalise_query_flag_ = app.add_flag(
        "--normalise-query", normalise_query_,
        "make texts of a query alike: white space at its ends goes and single spaces stay within, "
        "letters become lower case and one character with their accents (NFC) [default: as at the "
        "last start; off]");
    add_option(app, "--device", request_.device, "DEVICE",
               "cpu, cuda or cuda:N: where the ranker learns and makes its lists [default: cpu, or as "
               "at the first start]");
    add_option(app, "--groups", request_.groups, "SETTINGS",
               "groups of documents, A, B and on, that come with each request and share exposure, as "
               "key=value,… of [groups]: beta=1.2,epsilon=0.5,examination=[1,0.6,…]");
    add_option(app, "--seed", request_.seed, "N",
               "random seed of initialisation, exploration and noise [default: 1]");
    add_option(app, "--protocol", protocol_, "NAME",
               "protocol whose defaults apply: recommended, paper or reference [default: recommended]");
    declare_network(app);
    declare_limits(app);
    declare_sharing(app);
    add_option(app, "--import-log", options_.import.log, "FILE",
               "learn recorded feedback first; requires a new --state folder");
    add_option(app, "--import-data", options_.import.data, "SOURCE",
               "data set that the imported lines refer to, as in run --data");
    add_option(app, "--import-fold", options_.import.fold, "N",
               "fold of the imported data set [default: 1]");
    app.add_flag("--accept-loss", options_.accept_loss,
                 "cut a damaged log after its last valid record and set aside a checkpoint that the log "
                 "does not cover");
    app.add_flag(
        "--log-unshown", options_.log_unshown,
        "log the documents that were not shown, too, which 'olrank ope' needs to try other rankers");
    add_option(app, "--arms", options_.arms.arms, "ARMS",
               "rankers whose lists are shown, with their shares in percent, such as "
               "learner=50,incumbent=50, or promote=auto (docs/PRODUCTION.md); none: the learner's "
               "lists alone [default: as at the last start]");
    add_option(app, "--arm-model", options_.arms.models, "NAME=FILE",
               "model of an arm, for each that is neither learner nor incumbent");
    add_option(app, "--to-round", options_.to_round, "N",
               "go back to the state after this round: later records move to a file beside the log, "
               "and a later checkpoint is set aside");
    app.add_flag("--learn-only", learn_only_,
                 "learn from the log, write a checkpoint, print the state and exit");
    const auto tables = configuration_tables();
    const auto ranker = std::find_if(tables.begin(), tables.end(),
                                     [](const auto& table) { return table.schema->table == "ranker"; });
    flags_.declare(app, std::span(ranker, 1));
    app.get_option("--ranker")
        ->type_name(kinds_of_services())
        ->description("ranking and learning method [default: clickgp]");
  }

  int run(const OutputFlags& output) override {
    if (!surfaces_.empty()) return run_services(services()), 0;
    resolve();
    if (!learn_only_) return run_service(options_), 0;
    const RankerSource::State state = learn_only(options_);
    const char* form = output.json ? "{{\"rounds\":{},\"pairs\":{},\"fingerprint\":\"{}\"}}\n"
                                   : "rounds {}, pairs {}, fingerprint {}\n";
    return printed(fmt::format(fmt::runtime(form), state.round, state.pairs, state.fingerprint.hex()));
  }

 private:
  void resolve() {
    check_usage();
    options_.request = request();
    std::erase_if(options_.request.feature_names, [this](const std::string& name) {
      if (name.starts_with('-')) options_.import.dropped.push_back(name.substr(1));
      return name.starts_with('-');
    });
  }

  /// The services of --surfaces. What concerns the whole process is on the command line, all else in the
  /// file.
  std::vector<ServiceOptions> services() {
    static const std::set<std::string> kOfProcess = {
        "state",      "surfaces",        "address",  "port",         "token-file",    "connections",
        "access-log", "request-seconds", "max-body", "idle-seconds", "drain-seconds", "json",
        "quiet",      "verbose",         "wide",     "progress",     "help"};
    static const std::set<std::string> kOfOne = {
        "role",         "follow",   "follow-ca",   "follow-token-file",
        "wait-seconds", "to-round", "accept-loss", "learn-only"};
    for (const CLI::Option* option : app_->get_options()) {
      if (option->count() > 0 && !kOfProcess.contains(option->get_single_name()))
        throw_error<InvalidArgument>("--{} belongs in the tables of --surfaces {}.",
                                     option->get_single_name(), surfaces_);
    }
    check_usage();
    std::vector<ServiceOptions> services;
    for (const TomlDocument::Table& table : read_toml(surfaces_).tables) {
      if (table.name.find_first_not_of(kNameLetters) != std::string::npos || table.name.empty() ||
          table.repeated)
        throw_error<InvalidArgument>(
            "{}: Write the name of a surface as [shop-de], once, in letters, digits, - and _.",
            table.origin);
      ServeCommand one;
      CLI::App app;
      one.declare(app);
      std::vector<std::string> flags;
      for (const TomlDocument::Entry& entry : table.entries) {
        const bool is_of_one =
            kOfOne.contains(entry.key) || (entry.key.starts_with("log") && entry.key != "log-unshown");
        if (entry.key.find('=') != std::string::npos)
          throw_error<InvalidArgument>("{}: '{}' is no flag of a surface.", entry.key_origin, entry.key);
        if (kOfProcess.contains(entry.key) || is_of_one)
          throw_error<InvalidArgument>(
              "{}: '{}' is no flag of a surface: {}.", entry.key_origin, entry.key,
              is_of_one ? "start its folder alone for it" : "it is one of the whole process");
        const CLI::Option* option = app.get_option_no_throw("--" + entry.key);
        const auto* texts = std::get_if<std::vector<std::string>>(&entry.value);
        if (option == nullptr || texts == nullptr || option->get_items_expected_max() <= 1) {
          flags.push_back(fmt::format("--{}={}", entry.key, text_of(entry.value)));
        } else {
          for (const std::string& text : *texts) flags.push_back(fmt::format("--{}={}", entry.key, text));
        }
      }
      try {
        std::reverse(flags.begin(), flags.end());  // as CLI11 takes them
        app.parse(std::move(flags));
        one.options_.state = (std::filesystem::path(options_.state) / table.name).string();
        one.resolve();
      } catch (const CLI::ParseError& error) {
        throw_error<InvalidArgument>("{}: {}", table.origin, usage_sentence(error));
      } catch (const InvalidArgument& error) {
        throw_error<InvalidArgument>("{}: {}", table.origin, error.what());
      }
      one.options_.surface = table.name;
      one.options_.http = options_.http;
      one.options_.drain_seconds = options_.drain_seconds;
      services.push_back(std::move(one.options_));
    }
    if (services.empty()) throw_error<InvalidArgument>("{}: The file names no surface.", surfaces_);
    std::filesystem::create_directories(options_.state);
    return services;
  }

  static std::string text_of(const SettingValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
      return fmt::format("{}", fmt::join(*texts, ","));
    return to_toml(value);
  }

  void declare_network(CLI::App& app) {
    add_option(
        app, "--address", options_.http.address, "ADDRESS",
        "address or name to listen on; other than loopback requires --token-file [default: 127.0.0.1]");
    add_option(app, "--port", options_.http.port, "N",
               "port; 0 picks a free one, printed to standard output [default: 8080]");
    add_option(app, "--token-file", token_file_, "FILE",
               "file with the bearer token that requests must send");
    add_option(app, "--connections", options_.http.connections, "N",
               "maximum number of connections that have sent a request [default: 64]");
    add_option(app, "--request-seconds", request_seconds_, "S",
               "time limit for receiving a request [default: 10]");
    add_option(app, "--idle-seconds", idle_seconds_, "S",
               "time limit for an idle connection [default: 60]");
    add_option(app, "--access-log", options_.http.access_log, "FILE",
               "append a line of JSON for each answer to this file, which SIGHUP opens again after it was "
               "moved; - is standard output [default: none]");
    add_option(app, "--drain-seconds", options_.drain_seconds, "S",
               "time limit for learning pending feedback after SIGTERM [default: 30]");
  }
  void declare_limits(CLI::App& app) {
    add_option(app, "--max-body", body_text_, "SIZE", "maximum size of a request body [default: 16MB]");
    add_option(app, "--max-docs", options_.most_docs, "N",
               "maximum number of documents per request [default: 1000]");
    add_option(app, "--max-impressions", options_.impressions.open, "N",
               "maximum number of lists waiting for feedback [default: 10000]");
    add_option(app, "--max-impression-memory", impression_text_, "SIZE",
               "maximum memory of the lists waiting for feedback and of remembered answers; the oldest "
               "go first [default: 256MB]");
    add_option(app, "--max-document-memory", document_text_, "SIZE",
               "maximum memory of the documents that requests name by their IDs; beyond it no more are "
               "stored [default: 1GB]");
    life_ = add_option(app, "--impression-seconds", impression_seconds_, "S",
                       "time limit for feedback on a list [default: 3600]");
    add_option(app, "--window", options_.window_seconds, "S",
               "seconds in which a list collects events before the service learns from it, with or "
               "without events; 0: a list takes one feedback, the first [default: 0]");
    add_option(app, "--events", event_types_, "TYPES",
               "types of events with their values, such as click=1,cart=3,purchase=10 [default: click=1]");
    add_option(
        app, "--keep", keep_text_, "WHAT",
        "what stays of the log: all, checkpoint (what a start needs), 90d (days) or 1000000 (lists); "
        "beyond it the oldest segments go that a checkpoint has learned, and the state cannot be "
        "learned again from its first round [default: all]");
    add_option(app, "--segment", segment_text_, "SIZE",
               "size at which a part of the log is closed and compressed [default: 64MB]");
    add_option(app, "--checkpoint-every", options_.checkpoint_every, "N",
               "rounds between checkpoints [default: 1000]");
  }

  void declare_sharing(CLI::App& app) {
    add_option(app, "--log", log_text_, "URL",
               "log that several processes share, on a Redis or Valkey server: "
               "redis://[USER@]HOST[:PORT]/PREFIX, or rediss:// for TLS (docs/REPLICAS.md)");
    add_option(app, "--role", role_text_, "ROLE",
               "with --log: learner (learns, and does not rank), replica (ranks with the learner's "
               "latest published model, and has no --state) or both [default: both]");
    add_option(app, "--log-password-file", password_file_, "FILE",
               "file with the password of that server; or set OLRANK_LOG_PASSWORD");
    add_option(
        app, "--log-ca", shared_.server.ca, "FILE",
        "certificates of the authorities that sign the server's certificate [default: the system's]");
    add_option(app, "--log-cert", shared_.server.certificate, "FILE",
               "certificate of this process, with --log-key");
    add_option(app, "--log-key", shared_.server.key, "FILE", "private key of --log-cert");
    add_option(app, "--log-durability", durability_, "HOW",
               "check: refuse a server that may lose what it has acknowledged; assume: do not ask it "
               "[default: check]");
    add_option(app, "--log-replicas", shared_.replicas, "N",
               "replicas of the server that must have feedback before it is acknowledged [default: 0]");
    add_option(app, "--log-keep", shared_.keep, "N",
               "records that stay in the stream although every learner has archived them [default: 1000]");
    add_option(app, "--follow", options_.follow, "URL",
               "rank as the service at this URL does, without feedback; needs neither --state nor --log");
    add_option(app, "--follow-token-file", follow_token_file_, "FILE",
               "file with the bearer token of that service");
    add_option(app, "--follow-ca", options_.follow_ca, "FILE",
               "certificates of the authorities that sign its certificate, for a URL of https [default: "
               "the system's]");
    add_option(
        app, "--wait-seconds", options_.wait_seconds, "S",
        "time limit at the start for the server of --log, the learner of a replica, or the service to "
        "follow [default: 60]");
  }

  /// Which of the flags for one kind of process the others do not have.
  void check_sharing() {
    const bool follows = !options_.follow.empty();
    const bool shares = !log_text_.empty();
    if (shares) {
      shared_.server.address = RedisAddress::parse(log_text_);
      shared_.role = parse_choice<ServiceRole>("--role", role_text_.empty() ? "both" : role_text_);
      shared_.server.ranks = shared_.role != ServiceRole::kLearner;
      const char* password = std::getenv("OLRANK_LOG_PASSWORD");
      if (!password_file_.empty()) {
        shared_.server.password = read_token(password_file_);
      } else if (password != nullptr) {
        shared_.server.password = password;
      }
      if (durability_ != "check" && durability_ != "assume")
        throw_error<InvalidArgument>("--log-durability must be check or assume, not '{}'.", durability_);
      shared_.assume_durable = durability_ == "assume";
      if (shared_.server.certificate.empty() != shared_.server.key.empty())
        throw InvalidArgument("--log-cert and --log-key belong together.");
      if (shared_.replicas < 0 || shared_.replicas > 100)
        throw_error<InvalidArgument>("--log-replicas must be from 0 to 100, not {}.", shared_.replicas);
      options_.shared = shared_;
    } else if (!role_text_.empty()) {
      throw InvalidArgument(
          "--role requires --log: without a shared log, a process both ranks and learns.");
    }
    if (!follows && !options_.follow_ca.empty()) throw InvalidArgument("--follow-ca requires --follow.");
    if (follows && shares)
      throw InvalidArgument(
          "--follow and --log contradict each other: a process gets its model from one place. Remove one "
          "of them.");
    const bool has_learner = !follows && !(shares && shared_.role == ServiceRole::kReplica);
    if (has_learner) {
      if (options_.state.empty())
        throw InvalidArgument("--state is required: name the folder for the state of the service.");
      if (shares && options_.to_round)
        throw InvalidArgument(
            "--to-round: A shared log cannot go back to an earlier round. Begin another prefix with a copy "
            "of the folder.");
      return;
    }
    const std::string place = follows ? "--follow" : "--role replica";
    for (const auto& [flag, given] :
         {std::pair{"--state", !options_.state.empty()},
          std::pair{"--arms", options_.arms.arms.has_value()},
          std::pair{"--import-log", !options_.import.log.empty()}, std::pair{"--learn-only", learn_only_},
          std::pair{"--window", options_.window_seconds > 0},
          std::pair{"--log-unshown", options_.log_unshown}, std::pair{"--keep", keep_text_ != "all"},
          std::pair{"--to-round", options_.to_round.has_value()}}) {
      if (given)
        throw_error<InvalidArgument>(
            "{0} and {1} contradict each other: the service that learns takes {1}. Remove one of them.",
            place, flag);
    }
  }

  void check_usage() {
    check_sharing();
    if (!options_.import.data.empty() && options_.import.log.empty())
      throw InvalidArgument("--import-data requires --import-log.");
    const auto require = [](std::string_view flag, std::int64_t value, std::int64_t lowest,
                            std::int64_t highest) {
      if (value >= lowest && value <= highest) return;
      throw_error<InvalidArgument>("{} must be from {} to {}, not {}.", flag, lowest, highest, value);
    };
    require("--port", options_.http.port, 0, 65535);
    if (features_->count() > 0) require("--features", request_.features, 1, 1'000'000);
    for (std::string_view rest = feature_names_; !feature_names_.empty();) {
      const std::size_t comma = rest.find(',');
      request_.feature_names.emplace_back(rest.substr(0, comma));
      std::string& name = request_.feature_names.back();
      if (const std::size_t equals = find_origin(name);
          equals != std::string::npos && !name.starts_with('-')) {
        request_.origins.push_back(name);
        name.resize(equals);
      }
      if (name.empty())
        throw_error<InvalidArgument>("--feature-names: The name of feature {} is empty.",
                                     request_.feature_names.size());
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (std::filesystem::path(options_.http.access_log).filename() == "feedback.jsonl")
      throw InvalidArgument("--access-log: feedback.jsonl is the log of a service: choose another name.");
    if (request_.cutoff) require("--cutoff", *request_.cutoff, 1, 1'000'000);
    require("--connections", static_cast<std::int64_t>(options_.http.connections), 1, 10'000);
    require("--max-docs", options_.most_docs, 1, 1'000'000);
    require("--max-impressions", static_cast<std::int64_t>(options_.impressions.open), 1, 100'000'000);
    require("--impression-seconds", impression_seconds_, 1, 10'000'000);
    require("--checkpoint-every", static_cast<std::int64_t>(options_.checkpoint_every), 1, 1'000'000'000);
    require("--request-seconds", request_seconds_, 1, 3600);
    require("--idle-seconds", idle_seconds_, 1, 86'400);
    require("--drain-seconds", options_.drain_seconds, 0, 86'400);
    require("--window", options_.window_seconds, 0, 10'000'000);
    require("--wait-seconds", options_.wait_seconds, 0, 86'400);
    if (options_.window_seconds == 0 && !event_types_.empty())
      throw InvalidArgument(
          "--events requires --window: without a window, a list gets all its clicks at once.");
    if (options_.window_seconds > 0 && life_->count() > 0) {
      throw_error<InvalidArgument>(
          "--window {} and --impression-seconds {} contradict each other: a list lives as long as its "
          "window.",
          options_.window_seconds, impression_seconds_);
    }
    options_.events = EventTypes::parse(event_types_);
    const auto size = [](std::string_view flag, std::string_view example, const std::string& text) {
      const auto bytes = parse_bytes(text);
      if (bytes && *bytes >= 1) return static_cast<std::size_t>(*bytes);
      throw_error<InvalidArgument>("{} must be a size such as {}, not '{}'.", flag, example, text);
    };
    options_.http.body_bytes = size("--max-body", "16MB", body_text_);
    options_.impressions.bytes = size("--max-impression-memory", "256MB", impression_text_);
    options_.document_bytes = size("--max-document-memory", "1GB", document_text_);
    options_.segments.keep = LogKeep::parse(keep_text_);
    options_.segments.bytes = static_cast<std::int64_t>(size("--segment", "64MB", segment_text_));
    options_.http.request = std::chrono::seconds(request_seconds_);
    options_.http.idle = std::chrono::seconds(idle_seconds_);
    options_.http.token = token_file_.empty() ? "" : read_token(token_file_);
    options_.impressions.age = std::chrono::seconds(impression_seconds_);
    if (!follow_token_file_.empty()) options_.follow_token = read_token(follow_token_file_);
  }

  ServiceRequest request() const {
    ServiceRequest request = request_;
    if (!request.model.empty()) request.model = model_file_of(request.model);
    if (!schema_.empty()) {
      const FeatureSchema schema = FeatureSchema::parse(read_file(schema_), schema_);
      request.schema = schema.text();
      const auto is_named = [](const std::string& name) { return !name.starts_with('-'); };
      if (std::any_of(request.feature_names.begin(), request.feature_names.end(), is_named))
        throw InvalidArgument(
            "--schema and --feature-names contradict each other: the schema has the names.");
      const std::vector<std::string>& columns = schema.columns();
      request.feature_names.insert(request.feature_names.begin(), columns.begin(), columns.end());
    }
    request.ranker = flags_.overrides();
    request.names_kind = std::any_of(
        request.ranker.begin(), request.ranker.end(),
        [](const SettingOverride& setting) { return setting.table == "ranker" && setting.key == "kind"; });
    if (normalise_query_flag_->count() > 0) request.normalise_query = normalise_query_;
    for (const SettingOverride& setting : request.ranker) {
      if (setting.table == GroupSettings::schema().table)
        throw_error<InvalidArgument>(
            "{}: The groups of a service are set by --groups: write --groups {}={}.", setting.origin,
            setting.key, setting.text);
    }
    if (protocol_)
      request.ranker.insert(request.ranker.begin(), {"protocol", "", "name", *protocol_, "--protocol"});
    return request;
  }

  CLI::App* app_ = nullptr;
  std::string surfaces_;
  ServiceOptions options_;
  ServiceRequest request_;
  CLI::Option* features_ = nullptr;
  std::string feature_names_;
  CLI::Option* normalise_query_flag_ = nullptr;
  bool normalise_query_ = false;
  std::string schema_;
  std::optional<std::string> protocol_;
  SettingFlags flags_;
  std::string token_file_;
  std::int64_t request_seconds_ = 10;
  std::int64_t idle_seconds_ = 60;
  std::string body_text_ = "16MB";
  std::string impression_text_ = "256MB";
  std::string document_text_ = "1GB";
  std::string keep_text_ = "all";
  std::string segment_text_ = "64MB";
  std::int64_t impression_seconds_ = 3600;
  CLI::Option* life_ = nullptr;
  std::string event_types_;
  bool learn_only_ = false;
  std::string log_text_;
  std::string role_text_;
  SharedLogOptions shared_;
  std::string password_file_;
  std::string durability_ = "check";
  std::string follow_token_file_;
};

}  // namespace

const CommandEntry kServeCommand{"serve", "run an HTTP service that ranks and learns from clicks",
                                 make_command<ServeCommand>};

}  // namespace olrank
