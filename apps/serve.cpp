#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "apps/command.h"
#include "apps/saved_trial.h"
#include "apps/service_setup.h"
#include "apps/setting_flags.h"
#include "core/data/normaliser_text.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/text/byte_size.h"
#include "serve/feedback_log.h"
#include "serve/http_server.h"
#include "serve/learner.h"
#include "serve/service.h"
#include "serve/state_folder.h"

namespace olrank {
namespace {

/// Of what a start begins its impressions' ids with.
std::string start_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::string token_of(const std::string& file) {
  if (file.empty()) return "";
  std::string token = read_file(file);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' '))
    token.pop_back();
  if (token.empty()) throw InvalidArgument(fmt::format("{}: The file holds no token.", file));
  return token;
}

class ServeCommand : public Command {
 public:
  std::string name() const override { return "serve"; }
  std::string summary() const override { return "a service over HTTP that ranks and learns from clicks"; }

  void declare(CLI::App& app) override {
    app.add_option("--state", state_, "folder of all that the service keeps")->type_name("DIR");
    app.add_option("--model", request_.model, "a model file to start from, or its trial's folder")
        ->type_name("FILE");
    app.add_option("--features", request_.features, "features of a document, where no model says so")
        ->type_name("D");
    app.add_option("--normalise", request_.normalise,
                   "query-minmax (as set) or none; fitted ones come with a model")
        ->type_name("KIND");
    app.add_option("--cutoff", request_.cutoff, "ranks shown where a request does not say (10)")
        ->type_name("K");
    app.add_option("--seed", request_.seed, "of initialisation, lists and noise (1)")->type_name("N");
    protocol_ =
        app.add_option("--protocol", protocol_text_, "whose defaults hold: paper or reference (paper)")
            ->type_name("NAME");
    declare_network(app);
    declare_limits(app);
    app.add_option("--import-log", import_.log, "learn recorded feedback first; a new folder only")
        ->type_name("FILE");
    app.add_option("--import-data", import_.data, "the data that its lines speak of, as for run --data")
        ->type_name("SOURCE");
    app.add_option("--import-fold", import_.fold, "its fold (1)")->type_name("N");
    app.add_flag("--learn-only", learn_only_,
                 "learn the log, write a checkpoint, print the state and stop");
    const auto tables = configuration_tables();
    const auto ranker = std::find_if(tables.begin(), tables.end(),
                                     [](const auto& table) { return table.schema->table == "ranker"; });
    flags_.declare(app, std::span(ranker, 1));
  }

  int run(const OutputFlags& output) override {
    check_usage();
    const StateFolder folder(state_);
    const SettledService settled = settle_service(folder, request());
    const ServiceIdentity& identity = settled.identity;
    const FittedNormaliser normaliser =
        parse_normaliser(identity.normalisation, folder.identity_file().string());
    // Two lists may be made with two states while the learner makes a third.
    auto ranker = make_service_ranker(settled, available_memory() / 3);
    if (settled.fresh) folder.begin(identity, settled.model);
    if (!import_.log.empty()) {
      const std::uint64_t rounds =
          import_feedback(folder, import_, normaliser, ranker->learns_from_unshown());
      log_info("{} rounds imported from {}", rounds, import_.log.string());
    }
    FeedbackLog log(folder.log(), impressions_.open);
    Learner learner(std::move(ranker), log,
                    {folder.checkpoint(), print_identity(identity), checkpoint_every_});
    if (learn_only_) return learn(learner, output);
    log_info("{}: {} rounds in the log, learning goes on from round {}", state_, log.rounds(),
             learner.restored_round());
    Service service(parts(identity, normaliser), log, learner);
    return serve(service, learner);
  }

 private:
  void declare_network(CLI::App& app) {
    app.add_option("--address", http_.address, "where to listen (127.0.0.1); elsewhere a token is needed")
        ->type_name("ADDRESS");
    app.add_option("--port", http_.port, "0: any free one, told on standard output (8080)")->type_name("N");
    app.add_option("--token-file", token_file_, "holds the bearer token that requests must carry")
        ->type_name("FILE");
    app.add_option("--connections", http_.connections, "open at once (64)")->type_name("N");
    app.add_option("--request-seconds", request_seconds_, "for a request to come (10)")->type_name("S");
    app.add_option("--idle-seconds", idle_seconds_, "that a connection may wait for one (60)")
        ->type_name("S");
    app.add_option("--drain-seconds", drain_seconds_, "of learning after SIGTERM (30)")->type_name("S");
  }
  void declare_limits(CLI::App& app) {
    app.add_option("--max-body", body_text_, "bytes of a request (16MB)")->type_name("SIZE");
    app.add_option("--max-docs", max_docs_, "documents of a request (1000)")->type_name("N");
    app.add_option("--max-impressions", impressions_.open, "lists that may wait for feedback (10000)")
        ->type_name("N");
    app.add_option("--impression-seconds", impression_seconds_, "that a list waits for feedback (3600)")
        ->type_name("S");
    app.add_option("--checkpoint-every", checkpoint_every_, "rounds (1000)")->type_name("N");
  }

  void check_usage() {
    if (state_.empty())
      throw InvalidArgument("--state is missing: name the folder that the service keeps.");
    if (!import_.data.empty() && import_.log.empty())
      throw InvalidArgument("--import-data is of no use without --import-log.");
    const auto require = [](std::string_view flag, std::int64_t value, std::int64_t lowest,
                            std::int64_t highest) {
      if (value >= lowest && value <= highest) return;
      throw InvalidArgument(
          fmt::format("{} is a number from {} to {}, not {}.", flag, lowest, highest, value));
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
    const auto body = parse_bytes(body_text_);
    if (!body || *body < 1)
      throw InvalidArgument(fmt::format("--max-body is a size such as 16MB, not '{}'.", body_text_));
    http_.body_bytes = static_cast<std::size_t>(*body);
    http_.request = std::chrono::seconds(request_seconds_);
    http_.idle = std::chrono::seconds(idle_seconds_);
    http_.token = token_of(token_file_);
    impressions_.age = std::chrono::seconds(impression_seconds_);
    require_safe_address(http_);
  }

  ServiceRequest request() const {
    ServiceRequest request = request_;
    if (!request.model.empty()) request.model = model_file_of(request.model);
    request.ranker = flags_.overrides();
    request.names_kind = std::any_of(
        request.ranker.begin(), request.ranker.end(),
        [](const SettingOverride& said) { return said.table == "ranker" && said.key == "kind"; });
    if (protocol_->count() > 0)
      request.ranker.insert(request.ranker.begin(), {"protocol", "", "name", protocol_text_, "--protocol"});
    return request;
  }

  Service::Parts parts(const ServiceIdentity& identity, const FittedNormaliser& normaliser) const {
    Service::Parts parts;
    parts.normaliser = normaliser;
    parts.metadata = {{"normalisation", identity.normalisation},
                      {"ranker", std::string(name_of(identity.ranker.kind))}};
    parts.requests.docs = max_docs_;
    parts.requests.features = normaliser.features;
    parts.requests.cutoff = identity.cutoff;
    parts.impressions = impressions_;
    parts.start = start_name();
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

  /// Until SIGINT or SIGTERM: then open requests are answered, accepted feedback is learned and a
  /// checkpoint written.
  int serve(Service& service, Learner& learner) const {
    const InterruptGuard guard;
    HttpServer server(service, http_);
    learner.start();
    std::atomic<bool> ended = false;
    std::thread serving([&] {
      server.run();
      ended = true;
    });
    const bool v6 = http_.address.find(':') != std::string::npos;
    fmt::print("http://{}{}{}:{}\n", v6 ? "[" : "", http_.address, v6 ? "]" : "", server.port());
    std::fflush(stdout);
    while (InterruptGuard::requested() == 0 && !ended)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const bool asked = InterruptGuard::requested() != 0;
    log_info("the service stops: open requests, then what is left to learn");
    server.stop();
    serving.join();
    learner.stop(std::chrono::seconds(drain_seconds_));
    if (!asked)
      throw Error("The service does not listen any more; see the system's log for what took its socket.");
    return 0;
  }

  std::string state_;
  ServiceRequest request_;
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
  std::int64_t impression_seconds_ = 3600;
  std::uint64_t checkpoint_every_ = 1000;
  ImportSource import_;
  bool learn_only_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve_command() {
  return std::make_unique<ServeCommand>();
}

}  // namespace olrank
