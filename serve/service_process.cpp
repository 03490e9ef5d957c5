#include "serve/service_process.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/data/normaliser.h"
#include "core/io/state_archive.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/files/model_file.h"
#include "serve/access_log.h"
#include "serve/document_store.h"
#include "serve/feature_schema.h"
#include "serve/file_log.h"
#include "serve/http_server.h"
#include "serve/model_follower.h"
#include "serve/own_file.h"
#include "serve/redis_lists.h"
#include "serve/redis_log.h"
#include "serve/schema_change.h"
#include "serve/service_identity.h"
#include "serve/snapshot.h"
#include "serve/state_folder.h"

namespace olrank {
namespace {

/// A random prefix for the impression ids of this process.
std::string random_start_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// Up to three states exist at once: two that requests still use and one that the learner builds.
std::unique_ptr<OnlineRanker> make_served_ranker(const ResolvedService& service) {
  return make_service_ranker(service, available_memory() / 3);
}

/// These happen around the requests of a service.
struct Serving {
  std::function<void()> begin;
  std::function<void()> tick;                                 // every 20 ms; StateLost ends the service
  std::function<std::string(std::chrono::seconds most)> end;  // returns what could not be kept
};

void serve(const std::vector<Surface>& surfaces, const ServiceOptions& options, Listener& listener,
           const std::vector<Serving>& parts) {
  std::exception_ptr lost;
  const auto guarded = [&lost](const auto& work) {
    try {
      work();
    } catch (const StateLost&) {
      lost = std::current_exception();
    } catch (const IoError& error) {  // the log has said so, and the next turn tries again
      return std::string(error.what());
    } catch (const std::exception&) {
      lost = std::current_exception();
    }
    return std::string();
  };
  const InterruptGuard guard;
  HttpServer server(surfaces, options.http, listener);
  for (const Serving& part : parts) part.begin();
  std::atomic<bool> ended = false;
  std::thread thread([&] {
    server.run();
    ended = true;
  });
  fmt::print("{}\n", listener.url());
  std::fflush(stdout);
  while (InterruptGuard::requested() == 0 && !ended && !lost) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (const Serving& part : parts) guarded(part.tick);
    for (const Surface& one : surfaces) guarded([&one] { one.service->close_windows(); });
  }
  const bool interrupted = InterruptGuard::requested() != 0;
  log_info("Stopping: answering open requests, then learning pending feedback.");
  server.stop();
  thread.join();
  std::vector<std::string> unkept;
  for (const Surface& one : surfaces) {
    if (!lost) guarded([&one] { one.service->close_windows(); });
    if (!lost) unkept.push_back(guarded([&one] { one.service->keep_windows(); }));
  }
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(lost ? 0 : options.drain_seconds);
  for (const Serving& part : parts) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(until - std::chrono::steady_clock::now());
    unkept.push_back(part.end(std::max(left, std::chrono::seconds(0))));
  }
  if (lost) std::rethrow_exception(lost);
  std::erase(unkept, "");
  if (!unkept.empty())
    throw_error<IoError>("The service has stopped, but not all of it was kept. {}", fmt::join(unkept, " "));
  if (!interrupted)
    throw Error(
        "The service stopped listening unexpectedly; the system log may say why its socket was closed.");
}

Service::Parts service_parts(const ServiceOptions& options, const ServiceIdentity& identity,
                             ResolvedArms arms, std::string start_model) {
  Service::Parts parts;
  parts.normaliser = parse_normaliser(identity.normalisation, "service");
  parts.kind = name_of(identity.ranker.kind);
  parts.metadata = model_metadata(identity);
  parts.requests.docs = options.most_docs;
  parts.requests.features = parts.normaliser.features;
  if (!identity.feature_names.empty()) {
    const std::vector<std::string> names = parse_feature_names(identity.feature_names);
    require_feature_names(names, identity.features, "feature_names");
    for (const std::string& name : names) parts.requests.names.emplace(name, parts.requests.names.size());
    parts.requests.origins =
        parse_hit_origins(parse_feature_names(identity.feature_origins), parts.requests.names);
  }
  const std::vector<std::string> inputs = named_inputs(identity).names;
  if (!inputs.empty()) parts.input_names = feature_names_text(inputs);
  if (auto schema = schema_of(identity)) {
    parts.requests.schema = std::make_shared<const FeatureSchema>(*std::move(schema));
    parts.schema_digest = parts.requests.schema->digest();
  }
  parts.requests.cutoff = identity.cutoff;
  // As many as a body can list: two bytes each.
  parts.requests.values = options.http.body_bytes / 2;
  parts.requests.incumbent = arms.plan && arms.plan->has(ArmPlan::kIncumbent);
  parts.requests.window = options.window_seconds > 0;
  parts.requests.normalise_query = identity.normalise_query;
  parts.start = random_start_id();
  parts.exposure = identity.exposure();
  parts.log_unshown = options.log_unshown;
  parts.arms = std::move(arms.plan);
  parts.models = std::move(arms.models);
  parts.model_columns = std::move(arms.columns);
  parts.identity = print_identity(identity);
  parts.start_model = std::move(start_model);
  parts.page = options.page;
  if (identity.groups) {
    parts.requests.groups = *identity.groups->count();
    parts.requests.most_ranks = most_balanced_ranks(identity.ranker, *identity.groups);
  }
  return parts;
}

/// The settings of lists that all processes of a shared log need, as text and back.
std::string lists_text(const ServiceOptions& options) {
  std::string events;
  for (std::size_t type = 0; type < options.events.names.size(); ++type)
    events += fmt::format("{}{}={}", type > 0 ? "," : "", options.events.names[type],
                          options.events.weights[type]);
  return fmt::format("impression-seconds is {}\nwindow is {}\nevents is {}\nlog-unshown is {}\n",
                     options.impressions.age.count(), options.window_seconds, events,
                     options.log_unshown ? "on" : "off");
}

void take_lists_text(std::string_view text, ServiceOptions& options) {
  const auto value = [&](std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) throw_error<IoError>("The prefix does not say '{}'.", key);
    const std::string_view rest = text.substr(at + key.size());
    return std::string(rest.substr(0, rest.find('\n')));
  };
  options.impressions.age = std::chrono::seconds(std::stoll(value("impression-seconds is ")));
  options.window_seconds = std::stoll(value("\nwindow is "));
  options.events = EventTypes::parse(value("\nevents is "));
  options.log_unshown = value("\nlog-unshown is ") == "on";
}

RedisLists::Settings redis_lists(const ServiceOptions& options) {
  return {options.impressions.age, std::chrono::seconds(options.window_seconds), options.events,
          options.impressions};
}

ResolvedArms arms_of(const SharedSettings& settings, const ServiceIdentity& identity,
                     const std::string& place) {
  const auto plan =
      settings.arms.empty() ? std::nullopt : std::optional(ArmPlan::parse_toml_text(settings.arms, place));
  return stored_arms(plan, settings.arm_models, identity, place);
}

/// How a learner is told apart from others of its prefix: by its machine and its folder.
std::string learner_name(const StateFolder& folder) {
  char host[HOST_NAME_MAX + 1] = {};
  ::gethostname(host, HOST_NAME_MAX);
  return fmt::format("{}:{}", host, std::filesystem::absolute(folder.path()).lexically_normal().string());
}

/// A start needs something that is not there yet: waits a moment. Throws after --wait-seconds, or if
/// somebody interrupts.
struct StartPause {
  std::int64_t seconds = 0;
  std::optional<std::chrono::steady_clock::time_point> until{};

  void operator()(const std::string& problem) {
    const InterruptGuard guard;
    if (!until) {
      until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
      if (seconds > 0) log_info("Waiting: {}", problem);
    }
    if (std::chrono::steady_clock::now() >= *until)
      throw_error<Error>("{} Waited {} s for it (--wait-seconds).", problem, seconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (InterruptGuard::requested() != 0) throw Error("Interrupted before the start: " + problem);
  }
};

/// Calls `get` until it returns something, for at most --wait-seconds, or until somebody interrupts.
template <class Get>
auto wait_for(const ServiceOptions& options, const Get& get, const std::string& what) {
  for (StartPause pause{options.wait_seconds};;) {
    std::string problem;
    try {
      if (auto found = get()) return *std::move(found);
      problem = what;
    } catch (const RedisError&) {
      throw;
    } catch (const IoError& error) {
      problem = error.what();
    }
    pause(problem);
  }
}

/// Checks the server of a shared log. The whole start waits for it, whenever it is away.
void reach(const ServiceOptions& options, RedisClient& client, const RedisLog& stream) {
  client.wait_with(StartPause{options.wait_seconds});
  stream.require_durable();
}

/// A process without a learner has the counters of its latest model. Null without any in the schema.
std::unique_ptr<FeatureCounters> followed_counters(const ServiceIdentity& identity) {
  const auto schema = schema_of(identity);
  return schema && schema->has_counters() ? std::make_unique<FeatureCounters>(*schema) : nullptr;
}

DocumentStore::Settings document_settings(const ServiceIdentity& identity, const ServiceOptions& options,
                                          const RedisDocuments* shared) {
  DocumentStore::Settings settings{{}, "", identity.normalisation, options.document_bytes};
  if (const auto schema = schema_of(identity)) settings.schema = schema->digest();
  settings.shared = shared;
  return settings;
}

/// Lists of a ranker on a GPU come from the process that learns.
void check_device(const ServiceIdentity& identity, const ServiceOptions& options) {
  if (identity.device == "cpu") return;
  if (options.shared || !options.follow.empty()) {
    throw_error<InvalidArgument>(
        "A service on a GPU is one process, which learns and ranks: run it without {}, or with --device "
        "cpu.",
        options.shared ? "--log" : "--follow");
  }
  constexpr std::int64_t kMostDocs = 65'535;  // along a grid's second dimension
  if (options.most_docs <= kMostDocs) return;
  throw_error<InvalidArgument>("--max-docs must be at most {} on a GPU, not {}.", kMostDocs,
                               options.most_docs);
}

/// The learner of a state folder, alone or with a shared log.
class LearnerProcess {
 public:
  /// Without `serves`, lists of earlier starts stay as they are.
  LearnerProcess(const ServiceOptions& options, bool serves) : options_(options), folder_(options.state) {
    if (options.shared) {
      client_.emplace(options.shared->server);
      stream_.emplace(*client_,
                      RedisLog::Durability{options.shared->assume_durable, options.shared->replicas});
      shared_documents_.emplace(*stream_);
      reach(options, *client_, *stream_);
    }
    ::umask(077);  // whatever the service writes is for its owner only
    resolve();
    const ServiceIdentity& identity = resolved_.identity;
    if (stream_ && !resolved_.change.empty())
      throw InvalidArgument(
          "--schema: The schema of a shared log cannot change: begin another prefix with --import-log.");
    if (stream_ && identity.groups)
      throw InvalidArgument(
          "--groups: The exposure of groups is kept in balance within one process: run the service without "
          "--log.");
    check_device(identity, options);
    resolve_arms_and_share();
    if (!resolved_.change.empty() && !options.arms.arms) refuse_unnamed_arms(arms_);
    std::optional<ImportedLog> imported;
    if (!options.import.log.empty())
      imported.emplace(folder_, options.import, parse_normaliser(identity.normalisation, "service"),
                       make_served_ranker(resolved_)->learns_from_unshown(), identity.groups.has_value(),
                       named_inputs(identity), identity.normalise_query);
    if (imported) {  // nothing can refuse a log that olrank has just written
      folder_.begin(identity, resolved_.model);
      imported->commit();
      log_info("Imported {} rounds from {}.", imported->rounds(), options.import.log.string());
    }
    if (!resolved_.change.empty())
      schemas_ = SchemaPair{folder_.identity()->feature_schema, identity.feature_schema};
    else if (auto pair = SchemaPair::read(folder_.schemas());
             pair && pair->after == identity.feature_schema)
      schemas_ = std::move(pair);  // a start ended before the documents had changed
    open_log(options.to_round);
    if (!resolved_.change.empty()) {
      log_info("{}: The schema {}. The {} of the log are learned again.", options.state, resolved_.change,
               counted(log_->rounds(), "round"));
    }
    if (stream_) {
      refuse_open_windows();
      try {
        open_archive();
      } catch (const ArchiveDiffers& differs) {
        if (!options.accept_loss) throw;
        log_warning("{}", differs.what());
        open_log(differs.common);
        open_archive();
      }
    }
    const bool starts_over = options.accept_loss || options.to_round.has_value();
    if (serves && !starts_over) lists_ = make_lists();  // may refuse events of the journal
    if (resolved_.is_new && !imported) folder_.begin(identity, resolved_.model);
    log_->begin_writing();
    log_->guard_writes([this] { folder_.require_lock(); });
    if (log_->dropped() > 0) {
      log_info(
          "{}: Rounds 1 to {} were dropped by --keep: this state cannot be learned again from its first "
          "round, so keep its checkpoint.",
          options.state, log_->dropped());
    }
    if (!resolved_.change.empty()) {
      schemas_->write(folder_.schemas());
      learner_->begin_writing();  // without a checkpoint, either schema learns the whole log
      folder_.begin(identity, "");
    }
    const bool has_documents = documents_->begin_writing([this] { folder_.require_lock(); });
    if (stream_) documents_->catch_up();
    if (schemas_ && has_documents) std::filesystem::remove(folder_.schemas());
    folder_.accept();
    if (!resolved_.changes.empty()) {
      folder_.begin(identity, {});
      log_info("{}: The settings from this start on: {}.", options.state, resolved_.changes);
    }
    if (serves && starts_over) lists_ = make_lists();  // sets files aside, as the log is cut
    if (client_) client_->wait_with({});
    if ((options.arms.arms || stream_) && !keeps_arms_) folder_.set_arms(arms_.plan, arms_.bytes);
  }

  RankerSource::State learn() {
    learner_->learn_all();
    return learner_->write_checkpoint();
  }

  void run(Listener& listener) { serve({{options_.surface, &open()}}, options_, listener, {serving()}); }

  Service& open() {
    const ServiceIdentity& identity = resolved_.identity;
    log_info("{}: {} rounds in the log, learning continues from round {}.", options_.state, log_->rounds(),
             learner_->restored_round());
    if (log_->rounds() == 0 && identity.model.empty() && !arms_.plan && options_.warns_of_first_lists) {
      log_warning(
          "The first lists are in random order, as nothing was learned yet. To spare users, start from "
          "--model FILE or --import-log FILE, or show your own order first with --arms promote=auto.");
    }
    Service::Parts parts = service_parts(options_, identity, arms_, start_model());
    parts.exposed = learner_->logged_exposure();
    parts.requests.counters = learner_->counters();
    if (stream_ && options_.shared->role == ServiceRole::kLearner) parts.duty = Service::Duty::kLearner;
    parts.start = start_;
    parts.documents = &*documents_;
    if (!stream_) {
      change_.emplace(SchemaChange::Parts{
          folder_.schemas(), identity.feature_schema,
          [this](const std::string& schema) { return planned(schema); },
          [this](const ResolvedService& service) { return make_learner(service, true, false, false); },
          [this] { return log_->rounds(); }});
      parts.schemas = &*change_;
      parts.requests.other_schema = [this] { return change_->other(); };
    }
    const FeedbackLog* log = &*log_;
    if (stream_) log = &*stream_;
    return service_.emplace(std::move(parts), *lists_, *log, *learner_);
  }
  Serving serving() {
    return {[this] {
              FileLog::Segments segments = options_.segments;
              const auto least = std::max<std::chrono::milliseconds>(
                  options_.impressions.age, std::chrono::seconds(options_.window_seconds));
              segments.answers = [this, least] {
                return least + EventWindow::age_of_journals(folder_.path());
              };
              log_->keep_small(segments);
              documents_->keep_small({segments.bytes});
              learner_->start();
              documents_->start();
              if (archive_) archive_->start();
              if (change_) change_->resume();
            },
            [this] {
              log_->require_writable();
              if (documents_) documents_->require_writable();
              if (archive_) archive_->require_running();
              if (change_) take_over();
            },
            [this](std::chrono::seconds most) {
              if (archive_) archive_->stop();
              documents_->stop();
              if (change_) change_->stop();
              if (learner_->stop(most)) return std::string();
              return fmt::format(
                  "{}: The checkpoint is an earlier one or missing: the next start learns the records "
                  "behind it from the log again.",
                  options_.state);
            }};
  }

 private:
  std::string start_model() const {
    if (resolved_.identity.model.empty()) return {};
    return resolved_.is_new ? resolved_.model : read_own_file(folder_.model()).value_or("");
  }

  /// Reads log and checkpoint, but for records after `to_round`. Until the start is accepted, nothing else
  /// in the folder changes.
  void open_log(std::optional<std::uint64_t> to_round) {
    learner_.reset();
    log_.reset();
    documents_.reset();
    const bool accepts_loss = options_.accept_loss || to_round.has_value();
    const ServiceIdentity& identity = resolved_.identity;
    log_.emplace(folder_.log(), options_.impressions.open, options_.accept_loss, FileLog::Access::kWrite,
                 to_round);
    DocumentStore::Settings stored =
        document_settings(identity, options_, shared_documents_ ? &*shared_documents_ : nullptr);
    stored.folder = folder_.path();
    stored.accept_loss = options_.accept_loss;
    if (schemas_ && !schemas_->before.empty()) stored.before = conversion(*schemas_, identity);
    documents_.emplace(stored);
    if (stream_ && (log_->dropped() > 0 || options_.segments.keep.what != LogKeep::What::kAll))
      throw_error<InvalidArgument>(
          "{}: The archive of a shared log needs all rounds: remove --keep, and begin another folder if "
          "rounds were dropped.",
          options_.state);
    if (!resolved_.change.empty() && log_->dropped() > 0) refuse_dropped_rounds("--schema");
    if (stream_ && schemas_)
      throw_error<InvalidArgument>(
          "{}: Its documents have the schema before: start once without --log, so that they get the "
          "present one.",
          options_.state);
    learner_ = make_learner(resolved_, !resolved_.change.empty(), accepts_loss);
  }

  std::unique_ptr<Learner> make_learner(const ResolvedService& service, bool learns_again,
                                        bool accepts_loss, bool checks_log = true) {
    const ServiceIdentity& identity = service.identity;
    const FittedNormaliser normaliser =
        parse_normaliser(identity.normalisation, folder_.identity_file().string());
    return std::make_unique<Learner>(
        make_served_ranker(service), *log_,
        LearnerSettings{folder_.checkpoint(), print_identity(identity), options_.checkpoint_every,
                        normaliser.inputs(), accepts_loss, identity.exposure(), arms_.plan,
                        named_inputs(identity), learns_again, checks_log, &*documents_, schema_of(identity),
                        stream_.has_value()});
  }

  /// Makes documents of the schema before those of the one after it.
  static DocumentStore::Conversion conversion(const SchemaPair& schemas, const ServiceIdentity& after) {
    const auto old = std::make_shared<const FeatureSchema>(FeatureSchema::parse(schemas.before, "schema"));
    const auto now = std::make_shared<const FeatureSchema>(FeatureSchema::parse(schemas.after, "schema"));
    FittedNormaliser normaliser = parse_normaliser(after.normalisation, "service");
    normaliser.features = std::ssize(old->columns());
    return {documents_head(old->digest(), normaliser_text(normaliser)),
            [old, now](StoredDocument& document) {
              now->convert(*old, document.fields, document.times, document.columns);
            }};
  }

  [[noreturn]] void refuse_dropped_rounds(std::string_view what) const {
    throw_error<InvalidArgument>(
        "{}: A service under another schema learns its whole log again, of which --keep leaves a part: "
        "begin a new folder with --import-log {}.",
        what, log_->path().string());
  }

  static void refuse_unnamed_arms(const ResolvedArms& arms) {
    for (const ModelScorer& model : arms.models) {
      if (telling_names(model.model().feature_names).empty())
        throw InvalidArgument(
            "--schema: The model of an arm names no features, so that their order may have changed: name "
            "the arms again by --arms and --arm-model.");
    }
  }

  ResolvedService planned(const std::string& schema) {
    if (options_.segments.keep.what != LogKeep::What::kAll || log_->dropped() > 0)
      refuse_dropped_rounds("PUT /v1/schema");
    ServiceRequest request;
    request.schema = schema;
    request.device = options_.request.device;
    ResolvedService service = resolve_service(folder_, request);
    refuse_unnamed_arms(resolve_arms(folder_, {}, service.identity));
    return service;
  }

  /// A learner that has learned the whole log under another schema takes the place of the present one. The
  /// order on disk is that of a start with a changed schema.
  void take_over() {
    if (!change_->is_ready()) return;
    constexpr std::chrono::milliseconds kMost{200};  // that other requests wait for the slowest one
    std::string failure;
    const bool is_done = service_->between_requests(kMost, [&] {
      std::optional<SchemaChange::Learned> learned = change_->take();
      const ServiceIdentity& identity = learned->service.identity;
      learner_->stop(std::chrono::seconds(0), false);
      try {
        Service::Parts parts =
            service_parts(options_, identity, resolve_arms(folder_, {}, identity), start_model());
        parts.requests.counters = learned->learner->counters();
        parts.requests.other_schema = [this] { return change_->other(); };
        const auto schemas = SchemaPair::read(folder_.schemas());
        learned->learner->begin_writing();
        folder_.begin(identity, "");
        service_->change(std::move(parts), *learned->learner);
        std::swap(learner_, learned->learner);
        resolved_ = learned->service;
        const bool has_documents =
            documents_->change_schema(documents_head(schema_of(identity)->digest(), identity.normalisation),
                                      schemas && !schemas->before.empty() ? conversion(*schemas, identity)
                                                                          : DocumentStore::Conversion());
        change_->finish(identity, has_documents);
      } catch (const StateLost&) {
        throw;
      } catch (const Error& error) {
        failure = error.what();
      }
      learner_->start();
    });
    if (!is_done) return;  // the next call tries again
    if (!failure.empty()) return change_->fail(failure);
    log_info("{}: The schema {}. It holds from round {} on.", options_.state, resolved_.change,
             learner_->latest()->round);
  }

  void open_archive() {
    archive_.emplace(
        *stream_, *log_, *learner_,
        StreamArchive::Settings{learner_name(folder_), options_.shared->keep, redis_lists(options_)},
        &*documents_);
  }

  /// How many lists an earlier start with --window has left open.
  std::size_t open_windows() {
    EventWindow::Settings settings{
        std::chrono::seconds(1), options_.events, folder_.path(), options_.impressions, {}};
    settings.only_counts = true;
    return EventWindow(std::move(settings), "0", *log_).counts().open;
  }

  /// Events that this folder has acknowledged become records here, not in a shared log.
  void refuse_open_windows() {
    if (const std::size_t open = open_windows(); open > 0 && !options_.accept_loss) {
      throw_error<InvalidArgument>(
          "{}: Windows are still open here ({}): start once without --log, until they have closed.",
          options_.state, counted(open, "list"));
    }
  }

  /// A new folder that is started without settings takes those of the prefix.
  void resolve() {
    if (stream_ && !folder_.identity() && !options_.request.suffices()) {
      if (const std::optional<SharedSettings> known = stream_->settings()) {
        const std::string place = client_->address().text();
        resolved_ = resolve_stored(parse_identity(known->identity, place), options_.request, place);
        resolved_.is_new = true;
        resolved_.model = known->model;
        return;
      }
    }
    resolved_ = resolve_service(folder_, options_.request);
  }

  /// With a shared log, arms that are not named here are those of the prefix.
  void resolve_arms_and_share() {
    const ServiceIdentity& identity = resolved_.identity;
    if (!stream_) {
      arms_ = resolve_arms(folder_, options_.arms, identity);
      return;
    }
    const std::optional<SharedSettings> known = stream_->settings();
    const std::string place = client_->address().text();
    arms_ = known && !options_.arms.arms ? arms_of(*known, identity, place)
                                         : resolve_arms(folder_, options_.arms, identity);
    // A supervisor starts a learner again with the arms that another one has replaced since. If it replaced
    // them in turn, the two would end each other for ever.
    const std::string asked = text_of(arms_.plan);
    keeps_arms_ = known && options_.arms.arms && !resolved_.is_new && asked != known->arms &&
                  asked == text_of(folder_.arms());
    if (keeps_arms_) {
      log_warning(
          "{}: The prefix has other arms than --arms, which another learner has set since this one last "
          "started: this learner takes those. Give all learners of the prefix the same --arms.",
          place);
      arms_ = arms_of(*known, identity, place);
    }
    SharedSettings settings{print_identity(identity), start_model(), text_of(arms_.plan), arms_.bytes,
                            lists_text(options_)};
    if (!known) {
      RedisLists::require_types(*client_,
                                options_.window_seconds > 0 ? options_.events : EventTypes{{}, {}});
    } else {
      SharedSettings others = settings;  // only arms may be replaced
      others.arms = known->arms;
      others.arm_models = known->arm_models;
      stream_->begin(others, false);
    }
    stream_->begin(settings, options_.arms.arms && !keeps_arms_);
  }

  static std::string text_of(const std::optional<ArmPlan>& plan) { return plan ? plan->toml_text() : ""; }

  std::unique_ptr<ImpressionStore> make_lists() {
    const auto guard = [this] { folder_.require_lock(); };
    const bool starts_over = options_.accept_loss || options_.to_round;
    if (stream_) return std::make_unique<RedisLists>(*stream_, redis_lists(options_), start_);
    if (options_.window_seconds > 0) {
      auto window = std::make_unique<EventWindow>(
          EventWindow::Settings{std::chrono::seconds(options_.window_seconds), options_.events,
                                folder_.path(), options_.impressions, guard, starts_over},
          start_, *log_);
      if (const std::size_t open = window->counts().open; open > 0)
        log_info("Took up {} whose window was open.", counted(open, "list"));
      return window;
    }
    if (const std::size_t open = starts_over ? 0 : open_windows(); open > 0) {
      log_warning(
          "{}: Windows of an earlier start are still open ({}): start with --window and --events to "
          "collect their events; feedback on these lists is refused now.",
          options_.state, counted(open, "list"));
    }
    const ImpressionFile::Settings file{folder_.path(),
                                        std::chrono::milliseconds(options_.impressions.age).count(),
                                        options_.impressions.bytes, guard, starts_over};
    return std::make_unique<FirstAnswers>(FirstAnswers::Settings{options_.impressions, start_, file},
                                          *log_);
  }

  const ServiceOptions& options_;
  StateFolder folder_;
  std::optional<RedisClient> client_;
  std::optional<RedisLog> stream_;
  std::optional<RedisDocuments> shared_documents_;
  ResolvedService resolved_;
  ResolvedArms arms_;
  bool keeps_arms_ = false;  // of the prefix, in place of those that --arms names and the folder keeps
  std::optional<FileLog> log_;
  std::optional<DocumentStore> documents_;
  std::unique_ptr<Learner> learner_;
  std::optional<StreamArchive> archive_;
  const std::string start_ = random_start_id();
  std::unique_ptr<ImpressionStore> lists_;
  std::optional<Service> service_;
  std::optional<SchemaPair> schemas_;  // of this start, where they differ
  std::optional<SchemaChange> change_;
};

/// Ranks with a model that comes from elsewhere.
void run_replica(Service::Parts parts, const ServiceOptions& options, ImpressionStore& lists,
                 const FeedbackLog& log, ModelFollower& follower, Listener& listener) {
  DocumentStore* documents = parts.documents;
  Service service(std::move(parts), lists, log, follower);
  serve({{"", &service}}, options, listener,
        {{[&] {
            follower.start();
            if (documents != nullptr) documents->start();
          },
          [&follower] { follower.require_running(); },
          [&](std::chrono::seconds) {
            if (documents != nullptr) documents->stop();
            return follower.stop(), std::string();
          }}});
}

/// A replica of a shared log: it has no state of its own.
void replicate(ServiceOptions options, Listener& listener) {
  RedisClient client(options.shared->server);
  RedisLog stream(client, {options.shared->assume_durable, options.shared->replicas});
  const std::string place = client.address().text();
  reach(options, client, stream);
  const SharedSettings settings = wait_for(
      options, [&] { return stream.settings(); },
      fmt::format("{} has no service yet: start its learner.", place));
  stream.begin(settings, false);
  ResolvedService resolved =
      resolve_stored(parse_identity(settings.identity, place), options.request, place);
  const RedisDocuments shared(stream);
  DocumentStore documents(document_settings(resolved.identity, options, &shared));
  client.wait_with({});
  resolved.model = settings.model;
  take_lists_text(settings.lists, options);
  ResolvedArms arms = arms_of(settings, resolved.identity, place);
  const auto counters = followed_counters(resolved.identity);
  ModelFollower follower(SnapshotReader(make_served_ranker(resolved), arms.plan, counters.get()),
                         models_of(stream), place);
  Service::Parts parts = service_parts(options, resolved.identity, std::move(arms), settings.model);
  parts.duty = Service::Duty::kReplica;
  parts.requests.counters = counters.get();
  parts.documents = &documents;
  RedisLists lists(stream, redis_lists(options), parts.start);
  run_replica(std::move(parts), options, lists, stream, follower, listener);
}

/// A followed service sends these.
struct Followed {
  std::string identity;
  std::string model;
  std::string snapshot;
};
Followed parse_followed(std::string bytes, const std::string& origin) {
  StateReader state(std::move(bytes), origin, "follow a service of this version");
  Followed followed{state.get_text("follow.identity"), state.get_text("follow.model"),
                    state.get_text("follow.snapshot")};
  state.require_end();
  return followed;
}

/// Ranks as another service does, without its log.
void follow(const ServiceOptions& options, Listener& listener) {
  HttpFile file(options.follow, "/v1/snapshot", options.follow_token, options.follow_ca);
  Followed first =
      parse_followed(wait_for(
                         options, [&] { return file.fetch(); }, file.url() + " has no model yet."),
                     file.url());
  ResolvedService resolved =
      resolve_stored(parse_identity(first.identity, file.url()), options.request, file.url());
  resolved.model = first.model;
  check_device(resolved.identity, options);
  const auto fetch = [&file, first, damage = std::string()]() mutable -> std::optional<std::string> {
    if (!first.snapshot.empty()) return std::exchange(first.snapshot, {});
    std::optional<std::string> bytes = file.fetch();
    if (!bytes && !damage.empty()) throw IoError(damage);  // of the file that has not changed since
    if (!bytes) return std::nullopt;
    Followed next;
    try {
      damage.clear();
      next = parse_followed(std::move(*bytes), file.url());
    } catch (const IoError& error) {
      damage = error.what();
      throw;
    }
    // The learner's start may have changed settings such as the cutoff; this process keeps its own.
    if (!learn_alike(first.identity, next.identity, file.url()) || next.model != first.model)
      throw SettingsReplaced(file.url() + " is another service now: start this process again.");
    return std::move(next.snapshot);
  };
  const auto counters = followed_counters(resolved.identity);
  ModelFollower follower(SnapshotReader(make_served_ranker(resolved), std::nullopt, counters.get()), fetch,
                         file.url());
  Service::Parts parts = service_parts(options, resolved.identity, {}, first.model);
  parts.duty = Service::Duty::kFollower;
  parts.requests.counters = counters.get();
  NoLists none;
  run_replica(std::move(parts), options, none, FeedbackLog(), follower, listener);
}

/// Refuses an access log that cannot be opened before anything else. Where it is a file, SIGHUP opens it
/// again once the service runs, and does nothing before and after.
void try_access_log(const std::string& path) {
  if (path.empty()) return;
  if (AccessLog(path).is_file()) std::signal(SIGHUP, SIG_IGN);
}

}  // namespace

void run_service(const ServiceOptions& options) {
  // Before the folder, so that a start whose port is taken leaves nothing behind.
  Listener listener(options.http);
  try_access_log(options.http.access_log);
  if (!options.follow.empty()) return follow(options, listener);
  if (options.shared && options.shared->role == ServiceRole::kReplica) return replicate(options, listener);
  LearnerProcess(options, true).run(listener);
}

void run_services(std::span<const ServiceOptions> options) {
#ifdef M_MMAP_THRESHOLD
  // The copies that each learner publishes go back to the system. Without this glibc keeps them: four
  // surfaces took 281 MB after 3,200 lists each, and take 219 MB after 4,000.
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
  Listener listener(options.front().http);
  try_access_log(options.front().http.access_log);
  std::vector<std::unique_ptr<LearnerProcess>> processes;
  std::vector<Surface> surfaces;
  std::vector<Serving> parts;
  for (const ServiceOptions& one : options) {
    const auto named = [&one](const std::exception& error) {
      return one.surface.empty() ? error.what() : fmt::format("[{}]: {}", one.surface, error.what());
    };
    try {
      processes.push_back(std::make_unique<LearnerProcess>(one, true));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(named(error));
    } catch (const IoError& error) {
      throw IoError(named(error));
    }
    surfaces.push_back({one.surface, &processes.back()->open()});
    parts.push_back(processes.back()->serving());
  }
  serve(surfaces, options.front(), listener, parts);
}

RankerSource::State learn_only(const ServiceOptions& options) {
  return LearnerProcess(options, false).learn();
}

}  // namespace olrank
