#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/data/normaliser.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "models/files/model_file.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// It has to be raised with any change of what rankers save for lists.
inline constexpr std::int64_t kSnapshotFormat = 1;
/// Throws IoError unless a followed ranker's state begins with it; `remedy` says what to do.
void check_snapshot_format(StateReader& state, const std::string& origin, std::string_view remedy);

/// A clickgp with its memory of documents, by a service (GET /v1/snapshot) or by Ranker::save().
struct SnapshotFile {
  StateReader state;  // that of the ranker is next
  RankerSettings settings{};
  FittedNormaliser normaliser{};
  std::string feature_names{};  // in the model files' format; empty where they are unknown
  std::uint64_t round = 0;
  bool names_by_content = false;  // as a Ranker names documents; a service has their IDs
  std::string identity{};         // of a service
  std::string start_model{};

  /// The ranker of these settings in that state, which is read once. It draws no lists of its own.
  std::unique_ptr<OnlineRanker> ranker();
};

/// Throws IoError for damaged bytes, those of another version and those that are no snapshot of a clickgp.
SnapshotFile open_snapshot(std::string bytes, const std::string& origin);
/// Its model, with its memory.
LoadedModel model_of_snapshot(std::string bytes, const std::string& origin, ModelCode code);

}  // namespace olrank
