#include "serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <span>
#include <thread>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/random/rng_stream.h"
#include "core/version.h"
#include "models/baselines/baselines.h"
#include "serve/api_error.h"
#include "serve/open_lists.h"
#include "serve/schema_change.h"

namespace olrank {
namespace {

/// Buffers kept for later requests. A few large requests must not hold their memory for good.
constexpr std::size_t kPoolBytes = 64'000'000;

/// Appends for each shown rank the shown ranks that it certainly precedes.
void append_certain(std::string& out, const Ranking& ranking, std::int64_t shown) {
  if (!ranking.knows_orders) {
    out += "null";
    return;
  }
  std::vector<std::int64_t> place_of(ranking.by_score.size());
  for (std::int64_t place = 0; place < std::ssize(ranking.by_score); ++place)
    place_of[ranking.by_score[place]] = place;
  out += '[';
  for (std::int64_t a = 0; a < shown; ++a) {
    out += a > 0 ? ",[" : "[";
    bool first = true;
    const std::int64_t above = place_of[ranking.list[a]];
    for (std::int64_t b = 0; b < shown; ++b) {
      const std::int64_t below = place_of[ranking.list[b]];
      if (above >= below || !ranking.orders.certain(above, below)) continue;
      out += fmt::format("{}{}", first ? "" : ",", b);
      first = false;
    }
    out += ']';
  }
  out += ']';
}

/// Appends for each shown rank how probably this list has its document there, given those above it.
void append_propensity(std::string& out, const Ranking& ranking, std::int64_t shown) {
  const auto known = std::span(ranking.propensity).first(ranking.propensity.empty() ? 0 : shown);
  out += known.empty() ? std::string(",\"propensity\":null")
                       : fmt::format(",\"propensity\":[{}]", fmt::join(known, ","));
}

/// Appends for each shown rank how probably it is better than each other one.
void append_probabilities(std::string& out, const Ranking& ranking, std::int64_t shown) {
  if (ranking.probabilities.empty()) return;
  out += ",\"probability\":[";
  for (std::int64_t a = 0; a < shown; ++a) {
    const auto row = std::span(ranking.probabilities).subspan(a * shown, shown);
    out += fmt::format("{}[{:.4f}]", a > 0 ? "," : "", fmt::join(row, ","));
  }
  out += ']';
}

/// Each two shown documents take some ten bytes of certainty. Beyond these only requests that ask for
/// it get it.
constexpr std::int64_t kCertaintyBytes = 100'000;

/// `more` are the fields of a service with groups or arms.
std::string rank_answer(const std::string& impression, std::uint64_t round, const RankRequest& request,
                        const Ranking& ranking, std::int64_t shown, const std::string& more) {
  std::string out =
      fmt::format("{{\"impression\":{},\"query\":{},\"round\":{},\"docs\":[",
                  impression.empty() ? "null" : json_string(impression), json_string(request.query), round);
  for (std::int64_t rank = 0; rank < shown; ++rank) {
    const std::int32_t doc = ranking.list[rank];
    out += rank > 0 ? ",{\"id\":" : "{\"id\":";
    append_json_id(out, request.docs[doc]);
    out += fmt::format(",\"score\":{}}}", ranking.scores[doc]);
  }
  out += ']';
  if (request.certainty || 10 * shown * shown <= kCertaintyBytes) {
    out += ",\"certain\":";
    append_certain(out, ranking, shown);
    append_probabilities(out, ranking, shown);
  }
  append_propensity(out, ranking, shown);
  return out + more + "}\n";
}

std::string state_json(const RankerSource::State& state) {
  return fmt::format("{{\"round\":{},\"fingerprint\":\"{}\"}}\n", state.round, state.fingerprint.hex());
}

}  // namespace

class Service::Lease {
 public:
  explicit Lease(Service& service) : service_(service) {
    const std::lock_guard lock(service.pool_mutex_);
    if (service.pool_.empty()) {
      workspace_ = std::make_unique<Workspace>();
    } else {
      workspace_ = std::move(service.pool_.back());
      service.pool_.pop_back();
      service.pool_bytes_ -= workspace_->bytes();
    }
  }
  ~Lease() {
    workspace_->request.stored.clear();  // deleted documents must not stay in memory
    const std::size_t bytes = workspace_->bytes();
    const std::lock_guard lock(service_.pool_mutex_);
    if (service_.pool_bytes_ + bytes > kPoolBytes) return;
    service_.pool_bytes_ += bytes;
    service_.pool_.push_back(std::move(workspace_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Workspace& operator*() const { return *workspace_; }

 private:
  Service& service_;
  std::unique_ptr<Workspace> workspace_;
};

std::size_t Service::Workspace::bytes() {
  // The bits of the certain orders are among the vectors that grow with a list's square.
  const std::size_t docs = ranking.by_score.capacity();
  return heap_bytes(request.docs) + heap_bytes(request.values) + heap_bytes(request.fields) +
         heap_bytes(request.groups) + heap_bytes(inputs) + heap_bytes(ranking.scores) +
         2 * heap_bytes(ranking.by_score) + docs * docs / 8 + context.scratch().capacity();
}

std::string published_model(const RankerSource::Model& model, ModelMetadata about) {
  about.emplace_back("rounds", fmt::format("{}", model.round));
  return model_bytes(model.tensors, about);
}

Service::Service(Parts parts, ImpressionStore& lists, const FeedbackLog& log, RankerSource& learner)
    : parts_(std::move(parts)),
      page_(parts_.page),
      lists_(lists),
      log_(log),
      learner_(&learner),
      rounds_at_start_(log.rounds()),
      first_coin_(static_cast<std::uint32_t>(fingerprint_of(parts_.start).low)) {
  parts_.requests.documents = parts_.documents;
  if (parts_.exposure) balance_.emplace(*parts_.exposure, parts_.exposed);
  if (parts_.arms) experiment_ = parts_.arms->id();
}

std::shared_ptr<const PublishedRanker> Service::required_ranker() const {
  std::shared_ptr<const PublishedRanker> published = learner_->latest();
  if (published->ranker) return published;
  throw ApiError(
      503, "",
      learner_->failure().value_or("This replica has no model yet: its learner has published none."))
      .retry_after(1);
}

void Service::require_duty(std::string_view path) const {
  const bool replicates = parts_.duty == Duty::kReplica || parts_.duty == Duty::kFollower;
  if (path == "/v1/checkpoint") {
    if (replicates)
      throw ApiError(404, "", "This process has no learner: ask the learner for a checkpoint.");
    return;
  }
  if (parts_.duty == Duty::kLearner)
    throw ApiError(404, "",
                   fmt::format("This process only learns (--role learner): send {} to a replica.", path));
  if (parts_.duty == Duty::kFollower && path == "/v1/feedback") {
    throw ApiError(404, "",
                   "This process only ranks (--follow) and takes no feedback: ask the service that it "
                   "follows for lists whose clicks you have.");
  }
}

/// The shown documents in list order, then the unshown ones if the ranker learns from them.
FeedbackRecord Service::record_of(const Workspace& workspace, std::int64_t shown,
                                  std::uint64_t snapshot) const {
  const Ranking& ranking = workspace.ranking;
  const bool unshown = parts_.log_unshown || learner_->learns_from_unshown();
  const std::int64_t kept = unshown ? std::ssize(ranking.list) : shown;
  FeedbackRecord record;
  record.query = workspace.request.query;
  record.time = workspace.request.time;  // that of its counters
  record.snapshot = static_cast<std::int64_t>(snapshot);
  record.explored = workspace.request.explore;
  if (!ranking.propensity.empty())
    record.propensity.assign(ranking.propensity.begin(), ranking.propensity.begin() + shown);
  record.incumbent = workspace.request.incumbent;
  if (!workspace.arm.empty()) {
    record.experiment = experiment_;
    record.arm = workspace.arm;
    record.bucket = workspace.bucket;
    record.teams = workspace.teams;
    for (const std::int32_t doc : workspace.candidate)
      record.candidate.push_back(workspace.request.docs[doc]);
  }
  record.feature_names = parts_.input_names;
  record.schema = parts_.schema_digest;
  const std::int64_t named = parts_.normaliser.scales_queries() ? std::ssize(ranking.list) : kept;
  const bool by_version =
      !workspace.request.stored.empty() &&
      std::any_of(ranking.list.begin(), ranking.list.begin() + named,
                  [&](std::int32_t doc) { return workspace.request.stored[doc] != nullptr; });
  record.columns = by_version ? 0 : parts_.normaliser.inputs();
  record.has_unshown = unshown;
  record.docs.reserve(kept);
  record.inputs.reserve(kept * record.columns);
  for (std::int64_t rank = 0; rank < kept; ++rank) {
    const std::int32_t doc = ranking.list[rank];
    record.docs.push_back(workspace.request.docs[doc]);
    if (balance_) record.groups.push_back(workspace.request.groups[doc]);
    const float* row = workspace.inputs.data() + doc * record.columns;
    record.inputs.insert(record.inputs.end(), row, row + record.columns);
  }
  if (by_version) add_versions(workspace, kept, named, record);
  return record;
}

void Service::add_versions(const Workspace& workspace, std::int64_t kept, std::int64_t named,
                           FeedbackRecord& record) const {
  const RankRequest& request = workspace.request;
  const std::int64_t features = parts_.normaliser.features;
  const std::vector<std::int32_t>& list = workspace.ranking.list;
  const std::vector<float> zeros(features);
  for (std::int64_t place = 0; place < named; ++place) {
    const std::int32_t doc = list[place];
    if (place >= kept) record.rest.push_back(request.docs[doc]);
    const StoredDocument* stored = request.stored[doc].get();
    record.versions.push_back(stored != nullptr ? stored->version : 0);
    const std::vector<float>& base = stored != nullptr ? stored->columns : zeros;
    const float* row = request.values.data() + doc * features;
    if (std::memcmp(row, base.data(), features * sizeof(float)) == 0) continue;
    for (std::int64_t column = 0; column < features; ++column) {
      if (std::bit_cast<std::uint32_t>(row[column]) != std::bit_cast<std::uint32_t>(base[column]))
        record.given.push_back(
            {static_cast<std::int32_t>(place), static_cast<std::int32_t>(column), row[column]});
    }
  }
}

std::shared_ptr<const PublishedRanker> Service::make_list(const RankingTask& task,
                                                          Workspace& workspace) const {
  std::shared_ptr<const PublishedRanker> published;
  try {
    published = learner_->rank(workspace.context, task, workspace.ranking);
  } catch (const NumericError& error) {
    throw ApiError(422, workspace.request.list, error.what());
  }
  if (!std::all_of(workspace.ranking.scores.begin(), workspace.ranking.scores.end(),
                   [](float score) { return std::isfinite(score); })) {
    throw ApiError(422, workspace.request.list, "The scores of these documents overflow a 32-bit float.");
  }
  return published;
}

std::vector<std::int32_t> Service::list_of(std::string_view arm, Workspace& workspace) const {
  const RankRequest& request = workspace.request;
  if (arm == ArmPlan::kIncumbent) return request.incumbent_docs;
  if (arm == ArmPlan::kLearner) {
    if (!parts_.arms->limits_lists()) return workspace.ranking.list;
    return limited_list(workspace.ranking.list, request.incumbent_docs, parts_.arms->keep_top,
                        parts_.arms->max_displacement);
  }
  const std::vector<std::string> models = parts_.arms->model_names();
  const std::int64_t number = std::find(models.begin(), models.end(), arm) - models.begin();
  const ModelScorer& model = parts_.models[number];
  const std::vector<std::int64_t>& columns = parts_.model_columns[number];
  const std::int64_t docs = std::ssize(request.docs);
  const std::int64_t features = parts_.normaliser.features;
  FeatureMatrix raw{request.values.data(), docs, features};
  std::vector<float> own;  // the model's features in its order
  for (std::int64_t doc = 0; doc < docs && !columns.empty(); ++doc) {
    for (const std::int64_t column : columns) own.push_back(raw.values[doc * features + column]);
  }
  if (!columns.empty()) raw = {own.data(), docs, std::ssize(columns)};
  std::vector<double> scores(docs);
  const std::int64_t offsets[] = {0, docs};
  model.score(workspace.context.scratch(), raw, offsets, scores,
              {[&](std::int64_t) -> std::string_view { return request.query; },
               [&](std::int64_t doc) -> std::string_view { return request.docs[doc].text; }});
  std::vector<std::int32_t> list(docs);
  std::iota(list.begin(), list.end(), 0);
  std::stable_sort(list.begin(), list.end(),
                   [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
  return list;
}

void Service::choose_arm(const ArmReport& report, std::uint32_t list, std::int64_t shown,
                         Workspace& workspace) const {
  const ArmPlan& plan = *parts_.arms;
  Ranking& ranking = workspace.ranking;
  const std::string& user = workspace.request.user;
  workspace.bucket =
      ArmPlan::bucket_of(experiment_, user.empty() ? fmt::format("{}-{}", parts_.start, list) : user);
  const std::vector<double> shares = report.shares();
  workspace.arm = plan.interleave ? std::string(ArmPlan::kDrafted)
                                  : plan.names[ArmPlan::arm_of(workspace.bucket, shares)];
  if (workspace.arm == ArmPlan::kLearner && !plan.limits_lists()) return;
  const bool is_learners = workspace.arm == ArmPlan::kLearner;
  if (!is_learners) workspace.candidate.assign(ranking.list.begin(), ranking.list.begin() + shown);
  if (plan.interleave) {
    std::vector<std::int32_t> both = list_of(plan.names[0], workspace);
    const std::vector<std::int32_t> second = list_of(plan.names[1], workspace);
    both.insert(both.end(), second.begin(), second.end());
    std::vector<std::int32_t> teams(second.size());
    const PhiloxKey key =
        make_key({.seed = fingerprint_of(parts_.start).high, .purpose = Purpose::kInterleaving});
    team_draft({both, 2, second.size()}, key, list, workspace.context.scratch(), ranking.list, teams);
    for (std::int64_t rank = 0; rank < shown; ++rank) workspace.teams += teams[rank] == 0 ? 'A' : 'B';
  } else {
    ranking.list = list_of(workspace.arm, workspace);
  }
  // Nothing about the learner's own list holds for this one.
  const bool by_chance = plan.interleave || (is_learners && workspace.request.explore);
  ranking.propensity.assign(by_chance ? 0 : ranking.list.size(), 1.0);
  ranking.probabilities.clear();
  ranking.certainty.reset();
}

std::string Service::ranked(std::string_view path,
                            void (*parse)(std::string_view, const RequestLimits&, RankRequest&),
                            std::string_view body) {
  require_duty(path);
  const std::uint64_t round = required_ranker()->round;
  const Lease lease(*this);
  Workspace& workspace = *lease;
  RankRequest& request = workspace.request;
  parse(body, parts_.requests, request);
  const std::int64_t docs = std::ssize(request.docs);
  if (docs == 0) return rank_answer("", round, request, {}, 0, "");
  const std::int64_t columns = parts_.normaliser.inputs();
  workspace.inputs.resize(docs * columns);
  parts_.normaliser.apply({request.values.data(), docs, parts_.normaliser.features},
                          workspace.inputs.data());
  if (const auto bad = parts_.normaliser.find_bad_input(workspace.inputs.data(), docs)) {
    const bool named = !parts_.requests.names.empty();
    throw ApiError(422,
                   fmt::format("{}[{}].features{}", request.list, bad->doc,
                               named ? "." + parts_.requests.feature(bad->feature)
                                     : fmt::format("[{}]", bad->feature)),
                   fmt::format("This feature gives the input {:g}, beyond the limit of ±{:g}.", bad->value,
                               FittedNormaliser::kLargestInput));
  }

  const std::int64_t shown = std::min(request.cutoff, docs);
  const std::uint32_t list_number = ++ranked_;
  // Nothing would be learned from what a follower explores.
  const bool explores = request.explore && parts_.duty != Duty::kFollower;
  RankingTask task{{workspace.inputs.data(), docs, columns}, shown, first_coin_ + list_number, explores};
  std::vector<std::int64_t> names(docs);
  for (std::int64_t doc = 0; doc < docs; ++doc) names[doc] = name_number(request.docs[doc].text);
  task.identity = {name_number(request.query), names};
  std::shared_ptr<const PublishedRanker> published;
  std::string impression;
  std::string more;  // of the answer
  workspace.arm.clear();
  workspace.teams.clear();
  workspace.candidate.clear();
  if (balance_) {
    ExposureBalance::Turn turn(*balance_);
    const FairRound fair = turn.round(request.groups);
    task.fair = &fair;
    published = make_list(task, workspace);
    // Only what will be shown counts: it may find no room in memory.
    impression = lists_.open(record_of(workspace, shown, published->round), shown);
    const auto list = std::span<const std::int32_t>(workspace.ranking.list).first(shown);
    const double unfairness = turn.show(request.groups, list);
    more = fmt::format(",\"unfairness\":{},\"fair\":{}", unfairness,
                       std::abs(unfairness) <= balance_->rule().epsilon);
  } else {
    published = make_list(task, workspace);
    if (parts_.arms) {
      choose_arm(*published->arms, list_number, shown, workspace);
      more = fmt::format(",\"arm\":\"{}\"", workspace.arm);
    }
    impression = lists_.open(record_of(workspace, shown, published->round), shown);
  }
  if (const auto& certainty = workspace.ranking.certainty)
    counters_.count_certainty(certainty->certain_pairs, certainty->shown_pairs);
  RecentLists::List list{impression, request.query, {}, shown, published->round};
  list.certainty = workspace.ranking.certainty;
  for (std::int64_t rank = 0; rank < std::min<std::int64_t>(shown, RecentLists::kDocs); ++rank)
    list.docs.push_back(request.docs[workspace.ranking.list[rank]]);
  recent_.add(std::move(list));
  asked_.count(request.query, request.docs, workspace.ranking.by_score, request.incumbent_docs);
  effects_.take({request.values.data(), docs, parts_.normaliser.features}, RecentLists::Clock::now());
  return rank_answer(impression, published->round, request, workspace.ranking, shown, more);
}

void Service::close_windows() {
  for (const ImpressionStore::Closed& list : lists_.close_due()) count_clicks(list.arm, list.clicks);
}

void Service::count_clicks(std::string_view arm, std::span<const std::uint8_t> clicks) {
  counters_.count_clicks(clicks);
  curve_.count(arm, clicks);
}

std::string Service::feedback(std::string_view body) {
  require_duty("/v1/feedback");
  const FeedbackRequest request = parse_feedback_request(body, parts_.requests);
  if (const auto why = failure()) throw ApiError(503, "", *why);
  ImpressionStore::Outcome outcome;
  try {
    outcome = lists_.add(request.impression, request.clicks, request.events);
  } catch (const ApiError&) {
    throw;
  } catch (const Error& error) {
    throw ApiError(dynamic_cast<const LogFull*>(&error) != nullptr ? 507 : 503, "", error.what());
  }
  ++(outcome.duplicate ? duplicates_ : accepted_);
  if (!outcome.clicks.empty()) recent_.add_clicks(request.impression, outcome.clicks);
  if (outcome.round && !outcome.duplicate) count_clicks(outcome.arm, outcome.clicks);
  return fmt::format("{{\"accepted\":true,\"duplicate\":{},{}\"round\":{}}}\n", outcome.duplicate,
                     parts_.requests.window ? fmt::format("\"late\":{},", outcome.late) : std::string(),
                     outcome.round ? fmt::format("{}", *outcome.round) : "null");
}

DocumentStore& Service::documents() const {
  if (parts_.documents != nullptr) return *parts_.documents;
  throw ApiError(404, "",
                 "This process only ranks (--follow) and stores no documents: send the features with each "
                 "request.");
}

std::string Service::put_documents(std::string_view body) {
  DocumentStore& store = documents();
  const std::vector<std::int64_t> versions = store.put(parse_documents(body, parts_.requests));
  return fmt::format("{{\"stored\":{},\"versions\":[{}]}}\n", versions.size(), fmt::join(versions, ","));
}

std::string Service::delete_documents(std::string_view body) {
  DocumentStore& store = documents();
  return fmt::format("{{\"deleted\":{}}}\n", store.remove(parse_document_ids(body, parts_.requests)));
}

std::string Service::delete_document(const std::string& id) {
  if (documents().remove(std::span(&id, 1)) == 0) throw ApiError(404, "id", "No such document is stored.");
  return "{\"deleted\":1}\n";
}

std::string Service::document(const std::string& id) const {
  const auto stored = documents().newest(id);
  if (!stored) throw ApiError(404, "id", "No such document is stored.");
  return document_json(*stored, parts_.requests) + "\n";
}

SchemaChange& Service::schemas() const {
  if (parts_.schemas != nullptr) return *parts_.schemas;
  throw ApiError(
      404, "",
      "This process has the schema of the service that it follows, or of its shared log: ask that service, "
      "or begin another prefix with --import-log.");
}

bool Service::between_requests(std::chrono::milliseconds most, const std::function<void()>& work) {
  const std::lock_guard gate(gate_);
  const auto until = std::chrono::steady_clock::now() + most;
  std::unique_lock alone(visits_, std::defer_lock);
  while (!alone.try_lock()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  work();
  return true;
}

void Service::change(Parts parts, RankerSource& learner) {
  parts.start = parts_.start;
  parts.duty = parts_.duty;
  parts.documents = parts_.documents;
  parts.requests.documents = parts_.documents;
  parts.schemas = parts_.schemas;
  parts_ = std::move(parts);
  learner_ = &learner;
  effects_.forget_lists();
  effects_due_ = {};
  ++changes_;
  const std::lock_guard lock(snapshot_mutex_);
  snapshot_.reset();
}

std::string Service::checkpoint() {
  require_duty("/v1/checkpoint");
  try {
    return state_json(learner_->write_checkpoint());
  } catch (const IoError& error) {
    throw ApiError(507, "", error.what());
  } catch (const std::exception& error) {
    throw ApiError(503, "", error.what());
  }
}

std::string Service::arms() const {
  const auto published = learner_->latest();
  if (!published->arms) throw ApiError(404, "", "This service has no arms; it was started without --arms.");
  return published->arms->json() + "\n";
}

std::string Service::model() const {
  required_ranker();
  try {
    return published_model(learner_->model(), parts_.metadata);
  } catch (const Error& error) {
    throw ApiError(503, "", error.what());
  }
}

std::shared_ptr<const Service::SharedSnapshot> Service::shared_snapshot() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kInterval{100};
  constexpr int kRestPerSnapshot = 9;
  const std::lock_guard lock(snapshot_mutex_);
  if (snapshot_ && (Clock::now() < snapshot_->until || snapshot_->round == learner_->latest()->round))
    return snapshot_;
  try {
    const RankerSource::Snapshot made = learner_->snapshot();
    std::string bytes = followed_bytes(parts_.identity, parts_.start_model, made.bytes);
    const auto rest = std::max<Clock::duration>(kInterval, kRestPerSnapshot * made.made_in);
    snapshot_ =
        std::make_shared<SharedSnapshot>(SharedSnapshot{made.round, std::move(bytes), Clock::now() + rest});
    return snapshot_;
  } catch (const IoError&) {
    throw;
  } catch (const Error& error) {
    throw ApiError(503, "", error.what());
  }
}

std::string Service::snapshot_tag() {
  const std::string tag = fmt::format("{}-{}", parts_.start, shared_snapshot()->round);
  return changes_ == 0 ? tag : fmt::format("{}-{}", tag, changes_);
}

std::optional<std::string> Service::failure() const {
  if (auto why = learner_->failure()) return why;
  return log_.fault();
}

std::string Service::ready() const {
  if (const auto why = failure()) throw ApiError(503, "", *why);
  const std::uint64_t learned = required_ranker()->round;
  if (learned < rounds_at_start_) {
    throw ApiError(503, "",
                   fmt::format("Replaying the log: {} of {} rounds learned.", learned, rounds_at_start_));
  }
  return "{\"ready\":true}\n";
}

}  // namespace olrank
