#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/normaliser.h"
#include "core/fair/dataset_groups.h"
#include "core/fair/exposure.h"
#include "core/io/safetensors.h"
#include "core/settings/schema.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// Everything except the feedback that determines what a state folder's learner becomes.
struct ServiceIdentity {
  std::int64_t features = 0;    // of raw documents
  std::string feature_names;    // in the model files' format; empty where they are unknown
  std::string feature_origins;  // a list as the names, of NAME=ORIGIN; empty: all are of a feature log
  std::string feature_schema;   // as FeatureSchema::text(); empty without one
  std::string first_names;      // of records without names, where the schema has changed; else empty
  std::string normalisation;    // in the model files' format
  std::int64_t cutoff = 10;     // default k
  std::int64_t seed = 1;
  bool normalise_query = false;
  std::string model;           // fingerprint of the initial model file; empty without one
  std::string device = "cpu";  // or "cuda": their states differ
  RankerSettings ranker;
  std::optional<GroupSettings> groups;  // of a service with groups; only is_service_group_setting()

  /// None without groups.
  std::optional<ExposureRule> exposure() const;

  static const Schema& schema();  // all but the ranker and the groups, which have their own tables
};

/// The service's model files say this about it, in addition to their architecture.
ModelMetadata model_metadata(const ServiceIdentity& identity);

/// Writes TOML; parse_identity() returns an equal identity.
std::string print_identity(const ServiceIdentity& identity);
ServiceIdentity parse_identity(std::string_view text, const std::string& origin);

/// "lambda is 10.0, not 1.0" for each setting that differs; empty if none does.
std::string identity_difference(const ServiceIdentity& stored, const ServiceIdentity& requested);

/// `stored` with those settings of `requested` on which what was learned does not depend: cutoff,
/// normalise_query, explore_floor, memory_limit and the origins of features in search answers.
ServiceIdentity with_changes(ServiceIdentity stored, const ServiceIdentity& requested);
/// Whether states of these two, as text, differ in such settings alone.
bool learn_alike(std::string_view one, std::string_view other, const std::string& origin);

/// The settings of [groups] that a service has: its groups come with the requests, so only β, ε and the
/// probabilities of examination are left.
bool is_service_group_setting(const Setting& setting);

/// The value of --groups: "beta=1.2,epsilon=0.5". Fills in the examination of the first `cutoff` ranks if
/// it is not given. Throws InvalidArgument for settings that a service cannot follow.
GroupSettings parse_service_groups(std::string_view text, std::int64_t cutoff);

/// ε is in units of P(1) in the settings, and absolute in the rule.
ExposureRule exposure_rule_of(const GroupSettings& groups);

/// Throws InvalidArgument for a ranker that needs groups where there are none, and for lists that are too
/// long for templates.
void check_service_fairness(const RankerSettings& ranker, const std::optional<GroupSettings>& groups,
                            std::int64_t cutoff);

/// The largest k of a request: no more ranks than have a P, and with FairExp than templates have.
std::int64_t most_balanced_ranks(const RankerSettings& ranker, const GroupSettings& groups);

}  // namespace olrank
