#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/text/byte_size.h"
#include "jobs/saved_trial.h"
#include "serve/access_log.h"
#include "serve/feedback_log.h"
#include "serve/http_server.h"
#include "serve/learner.h"
#include "serve/listener.h"
#include "serve/service.h"
#include "serve/service_groups.h"
#include "serve/service_setup.h"
#include "serve/state_folder.h"
#include "serve/token_file.h"

namespace olrank {
namespace {

/// A random prefix for the impression ids of this process.
std::string random_start_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

class ServeCommand : public Command {
 public:
  std::string name() const override { return "serve"; }
  std::string summary() const override { return "run an HTTP service that ranks and learns from clicks"; }

  void declare(CLI::App& app) override {
    app.add_option("--state", state_, "folder for the state of the service")->type_name("DIR");
    app.add_option("--model", request_.model, "model to start from: a model file or a trial's folder")
        ->type_name("FILE");
    app.add_option("--features", request_.features, "features per document; required without --model")
        ->type_name("D");
    app.add_option(
           "--normalise", request_.normalise,
           "query-minmax or none; other kinds come with a model [default: the model's, or query-minmax]")
        ->type_name("KIND");
    app.add_option("--cutoff", request_.cutoff,
                   "documents to show if a request does not specify k [default: 10]")
        ->type_name("K");
    app.add_option("--groups", groups_,
                   "two groups of documents, A and B, that come with each request and share exposure, as "
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
    app.add_option("--import-log", import_.log,
                   "learn recorded feedback first; requires a new --state folder")
        ->type_name("FILE");
    app.add_option("--import-data", import_.data,
                   "data set that the imported lines refer to, as in run --data")
        ->type_name("SOURCE");
    app.add_option("--import-fold", import_.fold, "fold of the imported data set [default: 1]")
        ->type_name("N");
    app.add_flag("--accept-loss", accept_loss_,
                 "cut a damaged log after its last valid record and set aside a checkpoint that the log "
                 "does not cover");
    app.add_flag(
        "--log-unshown", log_unshown_,
        "log the documents that were not shown, too, which 'olrank ope' needs to try other rankers");
    app.add_option("--arms", arms_.arms,
                   "rankers whose lists are shown, with their shares in percent, such as "
                   "learner=50,incumbent=50, or promote=auto (docs/PRODUCTION.md); none: the learner's "
                   "lists alone [default: as at the last start]")
        ->type_name("ARMS");
    app.add_option("--arm-model", arms_.models,
                   "model of an arm, for each that is neither learner nor incumbent")
        ->type_name("NAME=FILE");
    app.add_option("--to-round", to_round_,
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
    // Before the folder, so that a start whose port is taken leaves nothing behind.
    std::optional<Listener> listener;
    if (!learn_only_) listener.emplace(http_);
    if (!http_.access_log.empty()) AccessLog{http_.access_log};  // refused before anything else happens
    StateFolder folder(state_);
    ::umask(077);  // whatever the service writes is for its owner only
    const ResolvedService resolved = resolve_service(folder, request());
    const ServiceIdentity& identity = resolved.identity;
    const FittedNormaliser normaliser =
        parse_normaliser(identity.normalisation, folder.identity_file().string());
    ResolvedArms arms = resolve_arms(folder, arms_, identity);
    // Up to three states exist at once: two that requests still use and one that the learner builds.
    auto ranker = make_service_ranker(resolved, available_memory() / 3);
    std::optional<ImportedLog> imported;
    if (!import_.log.empty())
      imported.emplace(folder, import_, normaliser, ranker->learns_from_unshown(),
                       identity.groups.has_value());
    if (imported) {  // nothing can refuse a log that olrank has just written
      folder.begin(identity, resolved.model);
      imported->commit();
      log_info("Imported {} rounds from {}.", imported->rounds(), import_.log.string());
    }
    // Reads log and checkpoint; until both are accepted, nothing else in the folder changes.
    FeedbackLog log(folder.log(), impressions_.open, accept_loss_, FeedbackLog::Access::kWrite, to_round_);
    Learner learner(std::move(ranker), log,
                    {folder.checkpoint(), print_identity(identity), checkpoint_every_, normaliser.inputs(),
                     accept_loss_ || to_round_, identity.exposure(), arms.plan});
    if (resolved.is_new && !imported) folder.begin(identity, resolved.model);
    log.begin_writing();
    log.guard_writes([&folder] { folder.require_lock(); });
    folder.accept();
    if (arms_.arms) folder.set_arms(arms.plan, arms.bytes);
    if (learn_only_) return learn(learner, output);
    log_info("{}: {} rounds in the log, learning continues from round {}.", state_, log.rounds(),
             learner.restored_round());
    if (log.rounds() == 0 && identity.model.empty() && !arms.plan) {
      log_warning(
          "The first lists are in random order, as nothing was learned yet. To spare users, start from "
          "--model FILE "
          "or --import-log FILE, or show your own order first with --arms promote=auto.");
    }
    Service::Parts service_parts = parts(identity, normaliser);
    service_parts.requests.incumbent = arms.plan && arms.plan->needs_incumbent();
    service_parts.arms = std::move(arms.plan);
    service_parts.models = std::move(arms.models);
    if (window_seconds_ > 0) {
      service_parts.requests.window = true;
      service_parts.window = EventWindow::Settings{
          std::chrono::seconds(window_seconds_), event_types_of_,          folder.path(), impressions_,
          [&folder] { folder.require_lock(); },  accept_loss_ || to_round_};
    }
    if (window_seconds_ == 0) {
      service_parts.kept = ImpressionFile::Settings{
          folder.path(), std::chrono::milliseconds(impressions_.age).count(), impressions_.bytes,
          [&folder] { folder.require_lock(); }, accept_loss_ || to_round_};
    }
    Service service(std::move(service_parts), log, learner);
    return serve(service, log, learner, *listener);
  }

 private:
  void declare_network(CLI::App& app) {
    app.add_option(
           "--address", http_.address,
           "address or name to listen on; other than loopback requires --token-file [default: 127.0.0.1]")
        ->type_name("ADDRESS");
    app.add_option("--port", http_.port,
                   "port; 0 picks a free one, printed to standard output [default: 8080]")
        ->type_name("N");
    app.add_option("--token-file", token_file_, "file with the bearer token that requests must send")
        ->type_name("FILE");
    app.add_option("--connections", http_.connections,
                   "maximum number of connections that have sent a request [default: 64]")
        ->type_name("N");
    app.add_option("--request-seconds", request_seconds_,
                   "time limit for receiving a request [default: 10]")
        ->type_name("S");
    app.add_option("--idle-seconds", idle_seconds_, "time limit for an idle connection [default: 60]")
        ->type_name("S");
    app.add_option(
           "--access-log", http_.access_log,
           "append a line of JSON for each answer to this file; - is standard output [default: none]")
        ->type_name("FILE");
    app.add_option("--drain-seconds", drain_seconds_,
                   "time limit for learning pending feedback after SIGTERM [default: 30]")
        ->type_name("S");
  }
  void declare_limits(CLI::App& app) {
    app.add_option("--max-body", body_text_, "maximum size of a request body [default: 16MB]")
        ->type_name("SIZE");
    app.add_option("--max-docs", max_docs_, "maximum number of documents per request [default: 1000]")
        ->type_name("N");
    app.add_option("--max-impressions", impressions_.open,
                   "maximum number of lists waiting for feedback [default: 10000]")
        ->type_name("N");
    app.add_option(
           "--max-impression-memory", impression_text_,
           "maximum memory of these lists and of remembered answers; the oldest go first [default: 256MB]")
        ->type_name("SIZE");
    life_ = app.add_option("--impression-seconds", impression_seconds_,
                           "time limit for feedback on a list [default: 3600]")
                ->type_name("S");
    app.add_option("--window", window_seconds_,
                   "seconds in which a list collects events before it is learned, whether it has any or "
                   "not; 0: the "
                   "first feedback is the list's only one [default: 0]")
        ->type_name("S");
    app.add_option("--events", event_types_,
                   "types of events with what they are worth, such as click=1,cart=3,purchase=10 [default: "
                   "click=1]")
        ->type_name("TYPES");
    app.add_option("--checkpoint-every", checkpoint_every_, "rounds between checkpoints [default: 1000]")
        ->type_name("N");
  }

  void check_usage() {
    if (state_.empty())
      throw InvalidArgument("--state is required: name the folder for the state of the service.");
    if (!import_.data.empty() && import_.log.empty())
      throw InvalidArgument("--import-data requires --import-log.");
    const auto require = [](std::string_view flag, std::int64_t value, std::int64_t lowest,
                            std::int64_t highest) {
      if (value >= lowest && value <= highest) return;
      throw InvalidArgument(fmt::format("{} must be from {} to {}, not {}.", flag, lowest, highest, value));
    };
    require("--port", http_.port, 0, 65535);
    if (request_.cutoff) require("--cutoff", *request_.cutoff, 1, 1'000'000);
    require("--connections", static_cast<std::int64_t>(http_.connections), 1, 10'000);
    require("--max-docs", max_docs_, 1, 1'000'000);
    require("--max-impressions", static_cast<std::int64_t>(impressions_.open), 1, 100'000'000);
    require("--impression-seconds", impression_seconds_, 1, 10'000'000);
    require("--checkpoint-every", static_cast<std::int64_t>(checkpoint_every_), 1, 1'000'000'000);
    require("--request-seconds", request_seconds_, 1, 3600);
    require("--idle-seconds", idle_seconds_, 1, 86'400);
    require("--drain-seconds", drain_seconds_, 0, 86'400);
    require("--window", window_seconds_, 0, 10'000'000);
    if (window_seconds_ == 0 && !event_types_.empty())
      throw InvalidArgument("--events requires --window: without one, a list has its clicks at once.");
    if (window_seconds_ > 0 && life_->count() > 0) {
      throw InvalidArgument(
          fmt::format("--window {} and --impression-seconds {} contradict each other: a list lives as long "
                      "as its window.",
                      window_seconds_, impression_seconds_));
    }
    event_types_of_ = EventTypes::parse(event_types_);
    const auto size = [](std::string_view flag, std::string_view example, const std::string& text) {
      const auto bytes = parse_bytes(text);
      if (bytes && *bytes >= 1) return static_cast<std::size_t>(*bytes);
      throw InvalidArgument(fmt::format("{} must be a size such as {}, not '{}'.", flag, example, text));
    };
    http_.body_bytes = size("--max-body", "16MB", body_text_);
    impressions_.bytes = size("--max-impression-memory", "256MB", impression_text_);
    http_.request = std::chrono::seconds(request_seconds_);
    http_.idle = std::chrono::seconds(idle_seconds_);
    http_.token = token_file_.empty() ? "" : read_token(token_file_);
    impressions_.age = std::chrono::seconds(impression_seconds_);
  }

  ServiceRequest request() const {
    ServiceRequest request = request_;
    if (!request.model.empty()) request.model = model_file_of(request.model);
    request.ranker = flags_.overrides();
    request.names_kind = std::any_of(
        request.ranker.begin(), request.ranker.end(),
        [](const SettingOverride& setting) { return setting.table == "ranker" && setting.key == "kind"; });
    request.groups = groups_;
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

  Service::Parts parts(const ServiceIdentity& identity, const FittedNormaliser& normaliser) const {
    Service::Parts parts;
    parts.normaliser = normaliser;
    parts.kind = name_of(identity.ranker.kind);
    parts.metadata = model_metadata(identity);
    parts.requests.docs = max_docs_;
    parts.requests.features = normaliser.features;
    parts.requests.cutoff = identity.cutoff;
    // As many as a body can list: two bytes each.
    parts.requests.values = http_.body_bytes / 2;
    parts.impressions = impressions_;
    parts.start = random_start_id();
    parts.exposure = identity.exposure();
    parts.log_unshown = log_unshown_;
    if (identity.groups) {
      parts.requests.groups = true;
      parts.requests.most_ranks = most_balanced_ranks(identity.ranker, *identity.groups);
    }
    return parts;
  }

  static int learn(Learner& learner, const OutputFlags& output) {
    learner.learn_all();
    const Learner::State state = learner.write_checkpoint();
    if (output.json) {
      fmt::print("{{\"rounds\":{},\"pairs\":{},\"fingerprint\":\"{}\"}}\n", state.round, state.pairs,
                 state.fingerprint.hex());
    } else {
      fmt::print("rounds {}, pairs {}, fingerprint {}\n", state.round, state.pairs,
                 state.fingerprint.hex());
    }
    return 0;
  }

  /// Serves until SIGINT or SIGTERM, then answers open requests, learns accepted feedback and writes a
  /// checkpoint.
  int serve(Service& service, const FeedbackLog& log, Learner& learner, Listener& listener) const {
    std::exception_ptr lost;
    const auto guarded = [&lost](const auto& work) {
      try {
        work();
      } catch (const StateLost&) {
        lost = std::current_exception();
      } catch (const IoError&) {  // the log has said so, and the next turn tries again
      }
    };
    const InterruptGuard guard;
    HttpServer server(service, http_, listener);
    learner.start();
    std::atomic<bool> ended = false;
    std::thread serving([&] {
      server.run();
      ended = true;
    });
    fmt::print("{}\n", listener.url());
    std::fflush(stdout);
    while (InterruptGuard::requested() == 0 && !ended && !lost) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      guarded([&log] { log.require_writable(); });
      guarded([&service] { service.close_windows(); });
    }
    const bool interrupted = InterruptGuard::requested() != 0;
    log_info("Stopping: answering open requests, then learning pending feedback.");
    server.stop();
    serving.join();
    if (!lost) guarded([&service] { service.close_windows(); });
    if (!lost) guarded([&service] { service.keep_windows(); });
    learner.stop(std::chrono::seconds(lost ? 0 : drain_seconds_));
    if (lost) std::rethrow_exception(lost);
    if (!interrupted)
      throw Error(
          "The service stopped listening unexpectedly; the system log may say why its socket was closed.");
    return 0;
  }

  std::string state_;
  ServiceRequest request_;
  std::optional<std::string> groups_;
  CLI::Option* protocol_ = nullptr;
  std::string protocol_text_;
  SettingFlags flags_;
  HttpSettings http_;
  std::string token_file_;
  std::int64_t request_seconds_ = 10;
  std::int64_t idle_seconds_ = 60;
  std::int64_t drain_seconds_ = 30;
  std::string body_text_ = "16MB";
  std::int64_t max_docs_ = 1000;
  ImpressionLimits impressions_;
  std::string impression_text_ = "256MB";
  std::int64_t impression_seconds_ = 3600;
  CLI::Option* life_ = nullptr;
  std::int64_t window_seconds_ = 0;
  std::string event_types_;
  EventTypes event_types_of_;
  std::uint64_t checkpoint_every_ = 1000;
  ImportSource import_;
  ArmRequest arms_;
  bool accept_loss_ = false;
  bool learn_only_ = false;
  std::optional<std::uint64_t> to_round_;
  bool log_unshown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve_command() {
  return std::make_unique<ServeCommand>();
}

}  // namespace olrank
