#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/normaliser.h"
#include "core/fair/exposure.h"
#include "core/fair/group_settings.h"
#include "core/io/safetensors.h"
#include "core/settings/schema.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// Everything except the feedback that determines what a state folder's learner becomes.
struct ServiceIdentity {
  std::int64_t features = 0;  // of raw documents
  std::string feature_names;  // in the model files' format; empty where they are unknown
  std::string normalisation;  // in the model files' format
  std::int64_t cutoff = 10;   // default k
  std::int64_t seed = 1;
  std::string model;           // fingerprint of the initial model file; empty without one
  std::string device = "cpu";  // or "cuda": their states differ
  RankerSettings ranker;
  std::optional<GroupSettings> groups;  // of a service with groups; only is_service_group_setting()

  /// None without groups.
  std::optional<ExposureRule> exposure() const;

  static const Schema& schema();  // all but the ranker and the groups, which have their own tables
};

/// What the service's model files say about it, in addition to their architecture.
ModelMetadata model_metadata(const ServiceIdentity& identity);

/// As TOML; parse_identity() returns an equal identity.
std::string print_identity(const ServiceIdentity& identity);
ServiceIdentity parse_identity(std::string_view text, const std::string& origin);

/// "lambda is 10.0, not 1.0" for each setting that differs; empty if none does.
std::string identity_difference(const ServiceIdentity& stored, const ServiceIdentity& requested);

}  // namespace olrank
