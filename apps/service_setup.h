#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "apps/configuration.h"
#include "core/data/normaliser.h"
#include "core/online/online_ranker.h"
#include "serve/state_folder.h"

namespace olrank {

/// What a command line says about a service.
struct ServiceRequest {
  std::string model;          // a file to start from
  bool names_kind = false;    // --ranker was said
  std::int64_t features = 0;  // 0: not said
  std::string normalise;      // empty: not said
  std::optional<std::int64_t> cutoff;
  std::optional<std::int64_t> seed;
  std::vector<SettingOverride> ranker;  // and the protocol

  /// Whether it is enough to start from.
  bool names_ranker() const { return !model.empty() || names_kind; }
};

/// A service as it is to run. Nothing is written yet.
struct SettledService {
  ServiceIdentity identity;
  bool fresh = false;                // the folder holds none
  std::filesystem::path model_file;  // that it starts from; empty without one
  std::string model;                 // the bytes of a fresh one's
};
/// The folder's service, which has to agree with whatever is said, or a new one.
SettledService settle_service(const StateFolder& folder, const ServiceRequest& request);

/// The ranker before round 1. `memory` is what its covariance may take. Throws InvalidArgument for kinds
/// that no service can have.
std::unique_ptr<OnlineRanker> make_service_ranker(const SettledService& service, std::int64_t memory);

/// Where imported feedback finds documents that its lines do not hold.
struct ImportSource {
  std::filesystem::path log;
  std::string data;  // as `olrank run --data`; empty: lines hold their documents' inputs
  std::int64_t fold = 1;
};

/// Makes a fresh state's log of recorded feedback; returns the rounds. All of it or, where a line is wrong,
/// nothing.
std::uint64_t import_feedback(const StateFolder& folder, const ImportSource& source,
                              const FittedNormaliser& normaliser, bool with_unshown);

}  // namespace olrank
