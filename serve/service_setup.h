#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/normaliser.h"
#include "core/feedback/feedback_record.h"
#include "core/io/atomic_file.h"
#include "core/online/online_ranker.h"
#include "jobs/settings/configuration.h"
#include "logs/list_features.h"
#include "models/files/model_scorer.h"
#include "serve/arms.h"
#include "serve/feature_schema.h"
#include "serve/state_folder.h"

namespace olrank {

/// The command line's description of a service.
struct ServiceRequest {
  std::string model;                       // a file to start from
  bool names_kind = false;                 // --ranker was given
  std::int64_t features = 0;               // 0: not given
  std::vector<std::string> feature_names;  // empty: not given
  std::vector<std::string> origins;        // NAME=ORIGIN of those that do not come from a feature log
  std::string schema;                      // as FeatureSchema::text(); empty: not given
  std::string normalise;                   // empty: not given
  std::optional<std::int64_t> cutoff;
  std::optional<std::int64_t> seed;
  std::optional<bool> normalise_query;
  std::optional<std::string> device;
  std::vector<SettingOverride> ranker;  // settings of ranker and protocol
  std::optional<std::string> groups;    // as given

  /// Whether the request suffices to create a service.
  bool suffices() const { return !model.empty() || names_kind || features > 0 || !feature_names.empty(); }
};

/// A service to run; nothing is written yet.
struct ResolvedService {
  ServiceIdentity identity;
  bool is_new = false;               // the folder contains no service yet
  std::string changes{};             // of its settings, which the folder does not have yet
  std::filesystem::path model_file;  // the model to start from; empty without one
  std::string model;                 // its bytes; empty: they are to be read from the file
  std::string device = "cpu";        // as asked for, or as the service began
  std::string change;                // of its schema, in words; empty: none
};
/// The service of a stored identity. Throws InvalidArgument if the request contradicts it; `place` is where
/// it is stored. That of a folder takes changes on which nothing depends that was learned.
ResolvedService resolve_stored(const ServiceIdentity& stored, const ServiceRequest& request,
                               const std::string& place, bool may_change = false);
/// The folder's service, or a new one. Throws InvalidArgument if the request contradicts the folder.
ResolvedService resolve_service(const StateFolder& folder, const ServiceRequest& request);

/// The command line's description of a service's arms.
struct ArmRequest {
  std::optional<std::string> arms;  // the value of --arms; none: as at the last start
  std::vector<std::string> models;  // NAME=FILE
};

/// The arms of a service, with its models and the bytes of their files.
struct ResolvedArms {
  std::optional<ArmPlan> plan;
  std::vector<ModelScorer> models;
  std::vector<std::string> bytes;
  std::vector<std::vector<std::int64_t>>
      columns{};  // of each model's features; empty: those of the service
};
/// The folder's arms, or other ones. Throws InvalidArgument for arms that the service cannot show.
ResolvedArms resolve_arms(const StateFolder& folder, const ArmRequest& request,
                          const ServiceIdentity& identity);

/// Returns the arms of a stored plan, with the bytes of its models.
ResolvedArms stored_arms(const std::optional<ArmPlan>& plan, std::vector<std::string> models,
                         const ServiceIdentity& identity, const std::string& place);

/// Returns what requests send; none for a service without a schema.
std::optional<FeatureSchema> schema_of(const ServiceIdentity& identity);

/// The inputs of the service's records.
NamedInputs named_inputs(const ServiceIdentity& identity);

/// How a new service normalises: as its model does, or as it is named. Throws InvalidArgument for a name
/// that contradicts the model or needs one.
FittedNormaliser requested_normaliser(const ServiceRequest& request);

/// The names of the kinds of rankers that a service can have: "pairrank|olranknet|…".
std::string kinds_of_services();

/// The ranker before round 1, with at most `memory` bytes for its covariance. Throws InvalidArgument for
/// kinds that a service does not support.
std::unique_ptr<OnlineRanker> make_service_ranker(const ResolvedService& service, std::int64_t memory);

/// The model of a stopped service after its whole log, as GET /v1/model would send it, or as GET
/// /v1/snapshot would with its memory. Changes nothing. Throws IoError if a service uses the folder.
std::string stopped_service_file(const std::filesystem::path& state, bool with_memory);

/// Recorded feedback to import, and the data set of its documents.
struct ImportSource {
  std::filesystem::path log;
  std::string data;  // as in `olrank run --data`; empty: lines contain their documents' inputs
  std::int64_t fold = 1;
  std::vector<std::string> dropped{};  // features of the lines that the service leaves out
};

/// Recorded feedback as the log of a new service, which appears with commit(). Until then it is a temporary
/// file.
class ImportedLog {
 public:
  /// Throws, and leaves nothing behind, for an invalid line and for a folder that already has a log.
  ImportedLog(const StateFolder& folder, const ImportSource& source, const FittedNormaliser& normaliser,
              bool with_unshown, bool with_groups, NamedInputs names = {}, bool normalise_query = false);

  /// The text of the query becomes that of requests.
  void write(FeedbackRecord& record);
  std::uint64_t rounds() const { return rounds_; }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  bool normalise_query_;
  std::uint64_t rounds_ = 0;
};

}  // namespace olrank
