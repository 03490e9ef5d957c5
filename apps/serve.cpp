#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/settings/choice.h"
#include "core/settings/enum_names.h"
#include "core/text/byte_size.h"
#include "jobs/saved_trial.h"
#include "serve/access_log.h"
#include "serve/service_process.h"

namespace olrank {
namespace {

class ServeCommand : public Command {
 public:
  std::string name() const override { return "serve"; }
  std::string summary() const override { return "run an HTTP service that ranks and learns from clicks"; }

  void declare(CLI::App& app) override {
    app.add_option("--state", options_.state, "folder for the state of the service")->type_name("DIR");
    app.add_option("--model", request_.model, "model to start from: a model file or a trial's folder")
        ->type_name("FILE");
    app.add_option("--features", request_.features, "features per document; required without --model")
        ->type_name("D");
    app.add_option("--feature-names", request_.feature_names,
                   "names of the features in their order, by which requests may give them [default: the "
                   "model's, if it has names]")
        ->type_name("A,B,…")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option(
           "--normalise", request_.normalise,
           "query-minmax or none; other kinds come with a model [default: the model's, or query-minmax]")
        ->type_name("KIND");
    app.add_option("--cutoff", request_.cutoff,
                   "documents to show if a request does not specify k [default: 10]")
        ->type_name("K");
    app.add_option("--device", device_,
                   "cpu, cuda or cuda:N: where the ranker learns and makes its lists [default: cpu, or as "
                   "at the first start]")
        ->type_name("DEVICE");
    app.add_option("--groups", groups_,
                   "groups of documents, A, B and on, that come with each request and share exposure, as "
                   "key=value,… of [groups]: beta=1.2,epsilon=0.5,examination=[1,0.6,…]")
        ->type_name("SETTINGS");
    app.add_option("--seed", request_.seed,
                   "random seed of initialisation, exploration and noise [default: 1]")
        ->type_name("N");
    protocol_ =
        app.add_option(
               "--protocol", protocol_text_,
               "protocol whose defaults apply: recommended, paper or reference [default: recommended]")
            ->type_name("NAME");
    declare_network(app);
    declare_limits(app);
    declare_sharing(app);
    app.add_option("--import-log", options_.import.log,
                   "learn recorded feedback first; requires a new --state folder")
        ->type_name("FILE");
    app.add_option("--import-data", options_.import.data,
                   "data set that the imported lines refer to, as in run --data")
        ->type_name("SOURCE");
    app.add_option("--import-fold", options_.import.fold, "fold of the imported data set [default: 1]")
        ->type_name("N");
    app.add_flag("--accept-loss", options_.accept_loss,
                 "cut a damaged log after its last valid record and set aside a checkpoint that the log "
                 "does not cover");
    app.add_flag(
        "--log-unshown", options_.log_unshown,
        "log the documents that were not shown, too, which 'olrank ope' needs to try other rankers");
    app.add_option("--arms", options_.arms.arms,
                   "rankers whose lists are shown, with their shares in percent, such as "
                   "learner=50,incumbent=50, or promote=auto (docs/PRODUCTION.md); none: the learner's "
                   "lists alone [default: as at the last start]")
        ->type_name("ARMS");
    app.add_option("--arm-model", options_.arms.models,
                   "model of an arm, for each that is neither learner nor incumbent")
        ->type_name("NAME=FILE");
    app.add_option("--to-round", options_.to_round,
                   "go back to the state after this round: later records move to a file beside the log, "
                   "and a later "
                   "checkpoint is set aside")
        ->type_name("N");
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
    check_usage();
    options_.request = request();
    if (!learn_only_) {
      run_service(options_);
      return 0;
    }
    const RankerSource::State state = learn_only(options_);
    if (output.json) {
      fmt::print("{{\"rounds\":{},\"pairs\":{},\"fingerprint\":\"{}\"}}\n", state.round, state.pairs,
                 state.fingerprint.hex());
    } else {
      fmt::print("rounds {}, pairs {}, fingerprint {}\n", state.round, state.pairs,
                 state.fingerprint.hex());
    }
    return 0;
  }

 private:
  void declare_network(CLI::App& app) {
    app.add_option(
           "--address", options_.http.address,
           "address or name to listen on; other than loopback requires --token-file [default: 127.0.0.1]")
        ->type_name("ADDRESS");
    app.add_option("--port", options_.http.port,
                   "port; 0 picks a free one, printed to standard output [default: 8080]")
        ->type_name("N");
    app.add_option("--token-file", token_file_, "file with the bearer token that requests must send")
        ->type_name("FILE");
    app.add_option("--connections", options_.http.connections,
                   "maximum number of connections that have sent a request [default: 64]")
        ->type_name("N");
    app.add_option("--request-seconds", request_seconds_,
                   "time limit for receiving a request [default: 10]")
        ->type_name("S");
    app.add_option("--idle-seconds", idle_seconds_, "time limit for an idle connection [default: 60]")
        ->type_name("S");
    app.add_option(
           "--access-log", options_.http.access_log,
           "append a line of JSON for each answer to this file; - is standard output [default: none]")
        ->type_name("FILE");
    app.add_option("--drain-seconds", options_.drain_seconds,
                   "time limit for learning pending feedback after SIGTERM [default: 30]")
        ->type_name("S");
  }
  void declare_limits(CLI::App& app) {
    app.add_option("--max-body", body_text_, "maximum size of a request body [default: 16MB]")
        ->type_name("SIZE");
    app.add_option("--max-docs", options_.most_docs,
                   "maximum number of documents per request [default: 1000]")
        ->type_name("N");
    app.add_option("--max-impressions", options_.impressions.open,
                   "maximum number of lists waiting for feedback [default: 10000]")
        ->type_name("N");
    app.add_option("--max-impression-memory", impression_text_,
                   "maximum memory of the lists waiting for feedback and of remembered answers; the oldest "
                   "go first [default: 256MB]")
        ->type_name("SIZE");
    life_ = app.add_option("--impression-seconds", impression_seconds_,
                           "time limit for feedback on a list [default: 3600]")
                ->type_name("S");
    app.add_option("--window", options_.window_seconds,
                   "seconds in which a list collects events before the service learns from it, with or "
                   "without events; 0: a list takes one feedback, the first [default: 0]")
        ->type_name("S");
    app.add_option(
           "--events", event_types_,
           "types of events with their values, such as click=1,cart=3,purchase=10 [default: click=1]")
        ->type_name("TYPES");
    app.add_option("--checkpoint-every", options_.checkpoint_every,
                   "rounds between checkpoints [default: 1000]")
        ->type_name("N");
  }

  void declare_sharing(CLI::App& app) {
    app.add_option("--log", log_text_,
                   "log that several processes share, on a Redis or Valkey server: "
                   "redis://[USER@]HOST[:PORT]/PREFIX, or rediss:// for TLS (docs/REPLICAS.md)")
        ->type_name("URL");
    app.add_option("--role", role_text_,
                   "with --log: learner (learns, and does not rank), replica (ranks with the learner's "
                   "latest published model, and has no --state) or both [default: both]")
        ->type_name("ROLE");
    app.add_option("--log-password-file", password_file_,
                   "file with the password of that server; or set OLRANK_LOG_PASSWORD")
        ->type_name("FILE");
    app.add_option(
           "--log-ca", shared_.server.ca,
           "certificates of the authorities that sign the server's certificate [default: the system's]")
        ->type_name("FILE");
    app.add_option("--log-cert", shared_.server.certificate, "certificate of this process, with --log-key")
        ->type_name("FILE");
    app.add_option("--log-key", shared_.server.key, "private key of --log-cert")->type_name("FILE");
    app.add_option("--log-durability", durability_,
                   "check: refuse a server that may lose what it has acknowledged; assume: do not ask it "
                   "[default: check]")
        ->type_name("HOW");
    app.add_option("--log-replicas", shared_.replicas,
                   "replicas of the server that must have feedback before it is acknowledged [default: 0]")
        ->type_name("N");
    app.add_option(
           "--log-keep", shared_.keep,
           "records that stay in the stream although every learner has archived them [default: 1000]")
        ->type_name("N");
    app.add_option(
           "--follow", options_.follow,
           "rank as the service at this URL does, without feedback; needs neither --state nor --log")
        ->type_name("URL");
    app.add_option("--follow-token-file", follow_token_file_, "file with the bearer token of that service")
        ->type_name("FILE");
    app.add_option(
           "--wait-seconds", options_.wait_seconds,
           "time limit at the start for the server of --log, the learner of a replica, or the service to "
           "follow [default: 60]")
        ->type_name("S");
  }

  /// Which of the flags for one kind of process the others do not have.
  void check_sharing() {
    const bool follows = !options_.follow.empty();
    const bool shares = !log_text_.empty();
    if (shares) {
      shared_.server.address = RedisAddress::parse(log_text_);
      shared_.role = parse_choice<ServiceRole>("--role", role_text_.empty() ? "both" : role_text_);
      const char* password = std::getenv("OLRANK_LOG_PASSWORD");
      if (!password_file_.empty()) {
        shared_.server.password = read_token(password_file_);
      } else if (password != nullptr) {
        shared_.server.password = password;
      }
      if (durability_ != "check" && durability_ != "assume")
        throw InvalidArgument(
            fmt::format("--log-durability must be check or assume, not '{}'.", durability_));
      shared_.assume_durable = durability_ == "assume";
      if (shared_.server.certificate.empty() != shared_.server.key.empty())
        throw InvalidArgument("--log-cert and --log-key belong together.");
      if (shared_.replicas < 0 || shared_.replicas > 100)
        throw InvalidArgument(
            fmt::format("--log-replicas must be from 0 to 100, not {}.", shared_.replicas));
      options_.shared = shared_;
    } else if (!role_text_.empty()) {
      throw InvalidArgument(
          "--role requires --log: without a shared log, a process both ranks and learns.");
    }
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
          std::pair{"--log-unshown", options_.log_unshown},
          std::pair{"--to-round", options_.to_round.has_value()}}) {
      if (given)
        throw InvalidArgument(fmt::format(
            "{0} and {1} contradict each other: the service that learns takes {1}. Remove one of them.",
            place, flag));
    }
  }

  void check_usage() {
    check_sharing();
    if (!options_.import.data.empty() && options_.import.log.empty())
      throw InvalidArgument("--import-data requires --import-log.");
    const auto require = [](std::string_view flag, std::int64_t value, std::int64_t lowest,
                            std::int64_t highest) {
      if (value >= lowest && value <= highest) return;
      throw InvalidArgument(fmt::format("{} must be from {} to {}, not {}.", flag, lowest, highest, value));
    };
    require("--port", options_.http.port, 0, 65535);
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
      throw InvalidArgument(
          fmt::format("--window {} and --impression-seconds {} contradict each other: a list lives as long "
                      "as its window.",
                      options_.window_seconds, impression_seconds_));
    }
    options_.events = EventTypes::parse(event_types_);
    const auto size = [](std::string_view flag, std::string_view example, const std::string& text) {
      const auto bytes = parse_bytes(text);
      if (bytes && *bytes >= 1) return static_cast<std::size_t>(*bytes);
      throw InvalidArgument(fmt::format("{} must be a size such as {}, not '{}'.", flag, example, text));
    };
    options_.http.body_bytes = size("--max-body", "16MB", body_text_);
    options_.impressions.bytes = size("--max-impression-memory", "256MB", impression_text_);
    options_.http.request = std::chrono::seconds(request_seconds_);
    options_.http.idle = std::chrono::seconds(idle_seconds_);
    options_.http.token = token_file_.empty() ? "" : read_token(token_file_);
    options_.impressions.age = std::chrono::seconds(impression_seconds_);
    if (!follow_token_file_.empty()) options_.follow_token = read_token(follow_token_file_);
  }

  ServiceRequest request() const {
    ServiceRequest request = request_;
    if (!request.model.empty()) request.model = model_file_of(request.model);
    request.ranker = flags_.overrides();
    request.names_kind = std::any_of(
        request.ranker.begin(), request.ranker.end(),
        [](const SettingOverride& setting) { return setting.table == "ranker" && setting.key == "kind"; });
    request.groups = groups_;
    request.device = device_;
    for (const SettingOverride& setting : request.ranker) {
      if (setting.table == GroupSettings::schema().table)
        throw InvalidArgument(
            fmt::format("{}: The groups of a service are set by --groups: write --groups {}={}.",
                        setting.origin, setting.key, setting.text));
    }
    if (protocol_->count() > 0)
      request.ranker.insert(request.ranker.begin(), {"protocol", "", "name", protocol_text_, "--protocol"});
    return request;
  }

  ServiceOptions options_;
  ServiceRequest request_;
  std::optional<std::string> device_;
  std::optional<std::string> groups_;
  CLI::Option* protocol_ = nullptr;
  std::string protocol_text_;
  SettingFlags flags_;
  std::string token_file_;
  std::int64_t request_seconds_ = 10;
  std::int64_t idle_seconds_ = 60;
  std::string body_text_ = "16MB";
  std::string impression_text_ = "256MB";
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

std::unique_ptr<Command> make_serve_command() {
  return std::make_unique<ServeCommand>();
}

}  // namespace olrank
