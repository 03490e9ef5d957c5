#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recommend/recommend_settings.h"
#include "recommend/recommender.h"
#include "recommend/training_data.h"

namespace olrank {

/// A row is what the program knows about a kind of recommender.
struct RecommenderKindRow {
  RecommenderKind kind = RecommenderKind::kPopular;
  std::string_view about;   // one line
  std::int64_t passes = 1;  // default
  std::span<const std::string_view> keys =
      {};  // of [recommend], that only some kinds read, this one among them
  bool explains = false;
  /// Sets what differs from the defaults of the table.
  void (*set_defaults)(RecommendSettings&) = nullptr;
  /// Bytes of the training beyond the data, at its peak.
  std::int64_t (*plan)(const RecommendSettings&, const ReviewCounts&, int threads) = nullptr;
  /// `settings.passes` is resolved. The data outlives the training.
  std::unique_ptr<RecommenderTraining> (*start)(const RecommendSettings&, const TrainingData&) = nullptr;
  /// Reads what Recommender::save() wrote; throws IoError for anything else.
  std::unique_ptr<Recommender> (*read)(StateReader&, const ReviewCounts&) = nullptr;
};

/// The table of kinds. Nothing else in the program tells kinds apart.
std::span<const RecommenderKindRow> recommender_kinds();
const RecommenderKindRow& recommender_kind(RecommenderKind kind);

/// Whether a kind reads a key of [recommend]; keys that no row lists are read by all.
bool kind_reads(RecommenderKind kind, std::string_view key);

/// The defaults of a kind.
RecommendSettings default_settings(RecommenderKind kind);
/// Settings with the kind's number of passes where they say 0.
RecommendSettings resolved(RecommendSettings settings);

/// The names of the kinds that there are.
std::vector<std::string> recommender_names();

}  // namespace olrank
