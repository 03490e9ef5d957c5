#include "jobs/recommending/study_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/settings/toml_document.h"
#include "core/text/nearest.h"
#include "jobs/recommending/recommend_configuration.h"
#include "recommend/recommender_kinds.h"

namespace olrank {
namespace {

/// The document with those entries of [recommend] that a kind reads, and its kind.
TomlDocument document_of_kind(const TomlDocument& document, RecommenderKind kind) {
  TomlDocument own;
  for (const TomlDocument::Table& table : document.tables) {
    TomlDocument::Table& kept = own.tables.emplace_back(table);
    if (table.name != RecommendSettings::schema().table) continue;
    std::erase_if(kept.entries, [&](const TomlDocument::Entry& entry) {
      const bool known = RecommendSettings::schema().find(entry.key) != nullptr;
      return entry.key == "kind" || (known && !kind_reads(kind, entry.key));
    });
  }
  return own;
}

std::string with_seed(std::string source, std::int64_t seed) {
  constexpr std::string_view kPlace = "{seed}";
  for (std::size_t at = source.find(kPlace); at != std::string::npos; at = source.find(kPlace, at))
    source.replace(at, kPlace.size(), std::to_string(seed));
  return source;
}

RecommenderKind kind_of(const std::string& name) {
  const auto kind = value_named<RecommenderKind>(name);
  const std::vector<std::string> names = recommender_names();
  if (!kind || std::find(names.begin(), names.end(), name) == names.end())
    throw InvalidArgument(fmt::format("recommend_study.kinds {}", must_be_one_of(name, names)));
  return *kind;
}

}  // namespace

const Schema& RecommendStudySettings::schema() {
  static const Schema schema =
      SchemaBuilder<RecommendStudySettings>("recommend_study", "Trainings of `olrank recommend study`.")
          .field("kinds", &RecommendStudySettings::kinds, "kinds of recommenders")
          .field("data", &RecommendStudySettings::data,
                 "sources of reviews; `{seed}` in one is the seed; `recommend.data` if empty")
          .field("seeds", &RecommendStudySettings::seeds, "seeds; each has its split and its training")
          .at_least(0)
          .field("sweep", &RecommendStudySettings::sweep, "a key of [recommend] that takes several values")
          .field("values", &RecommendStudySettings::values, "these values")
          .field("baseline", &RecommendStudySettings::baseline, "the kind that others are tested against")
          .field("choose", &RecommendStudySettings::choose,
                 "keep of each kind and source only the value of the best mean validation NDCG")
          .field("few_reviews", &RecommendStudySettings::few_reviews,
                 "compare the figures of users with at most 5 training reviews, not of all")
          .file_only()
          .build();
  return schema;
}

RecommenderStudy read_recommend_study(const std::filesystem::path& file) {
  const Schema& schema = RecommendStudySettings::schema();
  const TomlDocument document = read_toml(file);
  RecommenderStudy plan;
  for (const TomlDocument::Table& table : document.tables) {
    if (table.name != schema.table) continue;
    for (const TomlDocument::Entry& entry : table.entries) {
      const bool known = schema.find(entry.key) != nullptr;
      assign_setting(schema, &plan.study, entry.key, entry.value, known ? entry.origin : entry.key_origin);
    }
  }
  RecommendStudySettings& study = plan.study;
  if (study.sweep.empty() != study.values.empty())
    throw InvalidArgument(
        fmt::format("{}: recommend_study.sweep and values belong together.", file.string()));
  if (!study.sweep.empty() && RecommendSettings::schema().find(study.sweep) == nullptr) {
    throw InvalidArgument(fmt::format("{}: recommend_study.sweep names no key of [recommend]: '{}'. {}",
                                      file.string(), study.sweep,
                                      did_you_mean(study.sweep, RecommendSettings::schema().keys())));
  }
  if (study.kinds.empty() || study.seeds.empty())
    throw InvalidArgument(
        fmt::format("{}: recommend_study.kinds and seeds need at least one value.", file.string()));
  for (const std::string& name : study.kinds) {
    const RecommenderKind kind = kind_of(name);
    const TomlDocument own = document_of_kind(document, kind);
    const std::vector<SettingOverride> the_kind = {
        {RecommendSettings::schema().table, "", "kind", name, "recommend_study.kinds"}};
    const RecommendSettings base = resolve_recommend_settings(own, the_kind, schema.table);
    if (study.few_reviews && base.split == SplitBy::kUsers) {
      throw InvalidArgument(fmt::format(
          "{}: recommend_study.few_reviews needs split = reviews: new users have no training reviews.",
          file.string()));
    }
    const bool swept = !study.sweep.empty() && kind_reads(kind, study.sweep);
    const std::vector<std::string> values = swept ? study.values : std::vector<std::string>{""};
    const std::vector<std::string> sources =
        study.data.empty() ? std::vector<std::string>{base.data} : study.data;
    for (const std::string& source : sources) {
      for (const std::string& value : values) {
        for (const std::int64_t seed : study.seeds) {
          RecommenderCell cell{source, value, base};
          if (swept) {
            assign_setting_text(RecommendSettings::schema(), &cell.settings, study.sweep, value,
                                "recommend_study.values");
          }
          cell.settings.seed = seed;
          cell.settings.data = with_seed(source, seed);
          check_recommend_settings(cell.settings);
          plan.cells.push_back(cell);
        }
      }
    }
  }
  return plan;
}

}  // namespace olrank
