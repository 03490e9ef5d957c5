#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/data/normaliser.h"
#include "core/settings/schema.h"
#include "models/ranker_settings.h"

namespace olrank {

/// What a state directory is about: everything but the feedback that decides what its learner becomes.
struct ServiceIdentity {
  std::int64_t features = 0;  // of raw documents
  std::string normalisation;  // as model files carry it
  std::int64_t cutoff = 10;   // k of lists whose request does not say
  std::int64_t seed = 1;
  std::string model;  // fingerprint of the model file it started from; empty without one
  RankerSettings ranker;

  static const Schema& schema();  // without the ranker, which has a table of its own
};

/// As TOML; reading it gives the same identity.
std::string print_identity(const ServiceIdentity& identity);
ServiceIdentity read_identity(const std::filesystem::path& file);

/// "lambda: 10.0 instead of 1.0" for each setting that differs; empty when none does.
std::string identity_difference(const ServiceIdentity& here, const ServiceIdentity& asked);

}  // namespace olrank
