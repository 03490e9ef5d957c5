#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/settings/schema.h"
#include "recommend/recommend_settings.h"

namespace olrank {

/// The table [recommend_study]: which trainings a study consists of.
struct RecommendStudySettings {
  std::vector<std::string> kinds = {"mter", "bprmf"};
  std::vector<std::string> data;
  std::vector<std::int64_t> seeds = {1, 2, 3, 4, 5};
  std::string sweep;
  std::vector<std::string> values;
  std::string baseline = "bprmf";
  bool choose = false;
  bool few_reviews = false;

  static const Schema& schema();
};

/// One training of a study.
struct RecommenderCell {
  std::string data;   // as the table writes it
  std::string value;  // of the swept key; empty where the kind does not read it
  RecommendSettings settings;
};

struct RecommenderStudy {
  RecommendStudySettings study;
  std::vector<RecommenderCell> cells;
};

/// Reads a file with [recommend] and [recommend_study]. Keys of [recommend] that a kind does not read do
/// not count for it; a sweep of one gives that kind a single training. `{seed}` in a source is the seed.
RecommenderStudy read_recommend_study(const std::filesystem::path& file);

}  // namespace olrank
