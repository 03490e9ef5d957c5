#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/normaliser.h"
#include "core/fair/exposure.h"
#include "core/io/safetensors.h"
#include "core/runtime/execution_context.h"
#include "models/files/model_scorer.h"
#include "serve/arms.h"
#include "serve/file_log.h"
#include "serve/impression_file.h"
#include "serve/metrics.h"
#include "serve/page_figures.h"
#include "serve/requests.h"
#include "serve/snapshot.h"
#include "serve/status_page.h"

namespace olrank {

class SchemaChange;

/// The bytes of a safetensors file; `about` is added to what the architecture says.
std::string published_model(const RankerSource::Model& model, ModelMetadata about);

/// Answers requests, from request body to response body, independent of the transport. Rejects with
/// ApiError. Thread-safe.
class Service {
 public:
  /// This is its duty: a learner neither ranks nor takes feedback, and a follower only ranks.
  enum class Duty { kBoth, kLearner, kReplica, kFollower };

  struct Parts {
    FittedNormaliser normaliser;
    std::string kind;        // of the ranker
    ModelMetadata metadata;  // for exported models, in addition to their architecture
    RequestLimits requests;
    std::string schema_digest{};             // likewise; empty without a schema
    std::string input_names{};               // for the records, as in model files; empty: unknown
    std::string start;                       // unique per run: prefix of every impression ID
    std::optional<ExposureRule> exposure{};  // of a service with groups
    ExposureLedger exposed{};                // of the lists in its log
    bool log_unshown = false;                // whether records have the documents that were not shown
    std::optional<ArmPlan> arms{};           // as the learner's
    std::vector<ModelScorer> models{};       // of the arms that are models, in the plan's order
    std::vector<std::vector<std::int64_t>> model_columns{};  // of their features, as ResolvedArms::columns
    std::string identity{};     // what followers need of the settings, for snapshots
    std::string start_model{};  // likewise
    Duty duty = Duty::kBoth;
    ServicePage page{};                  // at the path /
    DocumentStore* documents = nullptr;  // null: this process stores none
    SchemaChange* schemas = nullptr;     // null: the schema of this process cannot change
  };
  /// All three must outlive the service. One that only ranks has a store that keeps nothing.
  Service(Parts parts, ImpressionStore& lists, const FeedbackLog& log, RankerSource& learner);

  std::string rank(std::string_view body) { return ranked("/v1/rank", parse_rank_request, body); }
  std::string rerank(std::string_view body) { return ranked("/v1/rerank", parse_rerank_request, body); }
  std::string feedback(std::string_view body);
  std::string put_documents(std::string_view body);
  std::string delete_documents(std::string_view body);
  /// Both throw ApiError 404 for a document that is not stored.
  std::string delete_document(const std::string& id);
  std::string document(const std::string& id) const;
  std::string checkpoint();
  /// Returns the schema of requests with its changes. Throws ApiError 404 where the schema cannot change.
  SchemaChange& schemas() const;
  std::string stats();
  /// The status page shows this. Unlike the stats it never waits for the learner.
  std::string overview() const;
  /// Tells how far each feature moves the scores of the model in the lists of late.
  std::string features();
  std::string model() const;
  /// Another process needs this to follow this one: settings and snapshot. However many follow, learning
  /// stands still for at most a tenth of the time, as they share a snapshot that is younger than that.
  std::string snapshot() { return shared_snapshot()->bytes; }
  /// Names the content of the snapshot that snapshot() then gives, unless it gives a newer one.
  std::string snapshot_tag();
  /// Throws ApiError 404 for a service without arms.
  std::string arms() const;
  /// Logs the lists whose window has closed. Does nothing without a window.
  void close_windows();
  /// Keeps the lists whose window is open for the next start.
  void keep_windows() { lists_.keep_open(); }
  std::string metrics() const;
  /// Throws ApiError 503 until the feedback logged by earlier runs is learned, and after learning failed.
  std::string ready() const;

  /// While it lives, a request has the service as it is. The thread that began it ends it.
  using Visit = std::shared_lock<std::shared_mutex>;
  Visit visit() {
    const std::lock_guard gate(gate_);
    return Visit(visits_);
  }
  /// Does `work` between two requests, of which none runs meanwhile: it may call change(). Returns false
  /// and does nothing if a request takes longer than `most`.
  bool between_requests(std::chrono::milliseconds most, const std::function<void()>& work);
  /// The service has another schema from here on. The learner must outlive it.
  void change(Parts parts, RankerSource& learner);

  const ServicePage& page() const { return page_; }
  Metrics& counters() { return counters_; }

 private:
  /// Buffers for one ranking request, leased from a pool.
  struct Workspace {
    ExecutionContext context;
    RankRequest request;
    std::vector<float> inputs;
    Ranking ranking;
    // These belong to the arm whose list it is.
    std::string arm;  // empty: the service has none
    std::int64_t bucket = -1;
    std::string teams;                    // of an interleaved list
    std::vector<std::int32_t> candidate;  // the learner's list, where another is shown

    std::size_t bytes();  // of the buffers that grow with a request
  };
  class Lease;
  struct SharedSnapshot {
    std::uint64_t round = 0;
    std::string bytes;
    std::chrono::steady_clock::time_point until;  // a newer one is made only then
  };

  std::shared_ptr<const SharedSnapshot> shared_snapshot();
  std::string ranked(std::string_view path,
                     void (*parse)(std::string_view, const RequestLimits&, RankRequest&),
                     std::string_view body);
  FeedbackRecord record_of(const Workspace& workspace, std::int64_t shown, std::uint64_t snapshot) const;
  /// Returns the ranker that made the list.
  std::shared_ptr<const PublishedRanker> make_list(const RankingTask& task, Workspace& workspace) const;
  /// Puts the list of an arm in place of the learner's.
  void choose_arm(const ArmReport& report, std::uint32_t list, std::int64_t shown,
                  Workspace& workspace) const;
  std::vector<std::int32_t> list_of(std::string_view arm, Workspace& workspace) const;
  /// The latest ranker; throws ApiError 503 before there is one.
  std::shared_ptr<const PublishedRanker> required_ranker() const;
  void require_duty(std::string_view path) const;
  DocumentStore& documents() const;
  /// Has versions and given numbers in place of inputs.
  void add_versions(const Workspace& workspace, std::int64_t kept, std::int64_t named,
                    FeedbackRecord& record) const;
  void count_clicks(std::string_view arm, std::span<const std::uint8_t> clicks);
  /// Why nothing more is learned; nothing while it is.
  std::optional<std::string> failure() const;

  Parts parts_;
  const ServicePage page_;  // read without a visit
  ImpressionStore& lists_;
  const FeedbackLog& log_;
  RankerSource* learner_;
  std::optional<ExposureBalance> balance_;
  Metrics counters_;
  RecentLists recent_;
  ClickCurve curve_;
  AskedQueries asked_;
  FeatureEffects effects_;
  std::mutex effects_mutex_;
  std::string effects_json_;  // of the latest request
  std::chrono::steady_clock::time_point effects_due_{};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::uint64_t rounds_at_start_;
  std::uint32_t first_coin_;  // Philox round of this run's first list
  std::string experiment_;    // the plan of the arms
  std::atomic<std::uint32_t> ranked_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> duplicates_{0};

  std::mutex gate_;  // passed by a visit that begins, and held by between_requests()
  std::shared_mutex visits_;
  std::uint64_t changes_ = 0;  // of the schema

  std::mutex snapshot_mutex_;
  std::shared_ptr<const SharedSnapshot> snapshot_;  // the latest; null before anybody has asked

  std::mutex pool_mutex_;
  std::vector<std::unique_ptr<Workspace>> pool_;
  std::size_t pool_bytes_ = 0;
};

}  // namespace olrank
