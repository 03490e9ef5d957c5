#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/settings/schema.h"
#include "core/settings/toml_document.h"
#include "core/statistics/t_tests.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/output_folder.h"
#include "jobs/recommending/recommender_run.h"
#include "jobs/study.h"
#include "recommend/recommender.h"
#include "report/final_measures.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

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

struct RecommenderCell {
  std::string data;   // as the table writes it
  std::string value;  // of the swept key; empty where the kind does not read it
  RecommendSettings settings;
};

struct RecommenderStudy {
  RecommendStudySettings study;
  std::vector<RecommenderCell> cells;
};

const Schema& RecommendStudySettings::schema() {
  using S = RecommendStudySettings;
  static const Schema schema =
      SchemaBuilder<S>("recommend_study", "Trainings of `olrank recommend study`.")
          .field("kinds", &S::kinds, "kinds of recommenders")
          .field("data", &S::data,
                 "sources of reviews; `{seed}` in one is the seed; `recommend.data` if empty")
          .field("seeds", &S::seeds, "seeds; each has its split and its training", {0})
          .field("sweep", &S::sweep, "a key of [recommend] that takes several values")
          .field("values", &S::values, "these values")
          .field("baseline", &S::baseline, "the kind that others are tested against")
          .field("choose", &S::choose,
                 "keep of each kind and source only the value of the best mean validation NDCG")
          .field("few_reviews", &S::few_reviews,
                 "compare the figures of users with at most 5 training reviews, not of all")
          .file_only()
          .build();
  return schema;
}

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
  if (const auto kind = value_named<RecommenderKind>(name)) return *kind;
  throw_error<InvalidArgument>("recommend_study.kinds {}",
                               must_be_one_of(name, RecommendSettings::schema().find("kind")->choices));
}

/// Reads a file with [recommend] and [recommend_study]. Keys of [recommend] that a kind does not read do
/// not count for it; a sweep of one gives that kind a single training. `{seed}` in a source is the seed.
RecommenderStudy read_recommend_study(const fs::path& file) {
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
    throw_error<InvalidArgument>("{}: recommend_study.sweep and values belong together.", file.string());
  if (!study.sweep.empty() && RecommendSettings::schema().find(study.sweep) == nullptr) {
    throw_error<InvalidArgument>("{}: recommend_study.sweep names no key of [recommend]: '{}'. {}",
                                 file.string(), study.sweep,
                                 did_you_mean(study.sweep, RecommendSettings::schema().keys()));
  }
  if (study.kinds.empty() || study.seeds.empty())
    throw_error<InvalidArgument>("{}: recommend_study.kinds and seeds need at least one value.",
                                 file.string());
  for (const std::string& name : study.kinds) {
    const RecommenderKind kind = kind_of(name);
    const TomlDocument own = document_of_kind(document, kind);
    const std::vector<SettingOverride> the_kind = {
        {RecommendSettings::schema().table, "", "kind", name, "recommend_study.kinds"}};
    const RecommendSettings base = resolve_recommend_settings(own, the_kind, schema.table);
    if (study.few_reviews && base.split == SplitBy::kUsers) {
      throw_error<InvalidArgument>(
          "{}: recommend_study.few_reviews needs split = reviews: new users have no training reviews.",
          file.string());
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

/// The figures of a summary: of all users, or of those with few training reviews.
ordered_json test_of(const ordered_json& summary, bool few_reviews) {
  return few_reviews ? summary["test"].value("few_reviews", ordered_json::object()) : summary["test"];
}

/// The trainings of one kind, source and value, by seed.
struct RecommenderRow {
  std::string data;
  std::string kind;
  std::string value;
  std::vector<ordered_json> summaries;

  /// A figure of the test by seed, of all users or of those with few reviews.
  std::vector<double> figures(const std::string& name, bool few_reviews) const {
    std::vector<double> values;
    for (const ordered_json& summary : summaries) {
      const ordered_json value = test_of(summary, few_reviews).value(name, ordered_json());
      values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
    return values;
  }
  double validation() const {
    double sum = 0.0;
    for (const ordered_json& summary : summaries) {
      if (!summary.contains("validation") || !summary["validation"].front().is_number())
        return std::nan("");
      sum += summary["validation"].front().get<double>();
    }
    return sum / static_cast<double>(summaries.size());
  }
};

/// The reviews of the last cells are kept: neighbours often have the same.
struct LatestParts {
  std::unique_ptr<const ReviewParts> parts;
  std::string key;

  const ReviewParts& of(const RecommendSettings& settings, ExecutionContext& context) {
    std::string wanted;
    for (const char* name :
         {"data", "scale", "feature_support", "review_support", "item_support", "user_support",
          "frequent_features", "split", "train_share", "validation_share", "test_users", "seed"})
      wanted += to_toml(RecommendSettings::schema().find(name)->read(&settings)) + "\n";
    if (!parts || wanted != key) {
      parts.reset();
      parts = load_review_parts(settings, context);
      key = wanted;
    }
    return *parts;
  }
};

WorkCell study_cell(const RecommenderCell& cell, const std::string& sweep, ExecutionContext& context,
                    LatestParts& latest) {
  const std::string recipe = print_recommend_settings(resolved(cell.settings));
  const auto train = [&cell, &context, &latest, recipe]() -> std::optional<ordered_json> {
    const ReviewParts& parts = latest.of(cell.settings, context);
    plan_recommender_memory(cell.settings, parts, context.threads(), available_memory());
    RecommenderRun run(cell.settings, parts, context);
    while (!run.finished()) {
      run.advance();
      if (InterruptGuard::requested() != 0) return std::nullopt;
    }
    ordered_json summary = run.summary();
    summary["settings"] = recipe;
    return summary;
  };
  const std::string title = fmt::format(
      "{} {}{}, seed {}", cell.data, name_of(cell.settings.kind),
      cell.value.empty() ? "" : fmt::format(", {} = {}", sweep, cell.value), cell.settings.seed);
  return {fingerprint_of(recipe).hex().substr(0, 16), recipe, 1.0, train, title};
}

std::vector<RecommenderRow> chosen_rows(const std::vector<RecommenderRow>& rows) {
  std::vector<RecommenderRow> chosen;
  for (const RecommenderRow& row : rows) {
    const auto rival = std::find_if(chosen.begin(), chosen.end(), [&](const RecommenderRow& other) {
      return other.data == row.data && other.kind == row.kind;
    });
    if (rival == chosen.end()) {
      chosen.push_back(row);
    } else if (row.validation() > rival->validation()) {
      *rival = row;
    }
  }
  return chosen;
}

/// The baseline's row beside a row: the same source, and the same value or the baseline's only one.
const RecommenderRow* baseline_of(const std::vector<RecommenderRow>& rows, const RecommenderRow& row,
                                  const std::string& baseline) {
  const RecommenderRow* only = nullptr;
  for (const RecommenderRow& other : rows) {
    if (other.kind != baseline || other.data != row.data || &other == &row) continue;
    if (other.value == row.value) return &other;
    only = &other;
  }
  return row.kind == baseline ? nullptr : only;
}

/// Mean NDCG@50 over seeds by known reviews.
ordered_json cold_start(const RecommenderRow& row) {
  ordered_json curve = ordered_json::array();
  for (std::size_t known = 0; known <= static_cast<std::size_t>(kMostKnownReviews); ++known) {
    std::vector<double> values;
    for (const ordered_json& summary : row.summaries) {
      const ordered_json& value = summary["test"]["cold_start"][known]["ndcg@50"];
      if (value.is_number()) values.push_back(value.get<double>());
    }
    const MeanInterval interval = mean_interval({values});
    curve.push_back({{"known_reviews", known},
                     {"ndcg@50", number_or_null(interval.mean)},
                     {"half_width", number_or_null(interval.half_width)}});
  }
  return curve;
}

ordered_json tested(const std::vector<RecommenderRow>& rows, const RecommendStudySettings& study) {
  ordered_json table = ordered_json::array();
  for (const RecommenderRow& row : rows) {
    ordered_json entry = {{"data", row.data}, {"kind", row.kind}};
    if (!study.sweep.empty()) entry["sweep"] = study.sweep;
    if (!study.sweep.empty()) entry["value"] = row.value;
    entry["seeds"] = row.summaries.size();
    if (std::isfinite(row.validation())) entry["validation"] = row.validation();
    const RecommenderRow* const other = baseline_of(rows, row, study.baseline);
    for (const std::int64_t cutoff : kRankingCutoffs) {
      const std::string name = fmt::format("ndcg@{}", cutoff);
      const std::vector<double> values = row.figures(name, study.few_reviews);
      const MeanInterval interval = mean_interval({values});
      entry[name] = {{"mean", number_or_null(interval.mean)},
                     {"half_width", number_or_null(interval.half_width)}};
      if (other == nullptr) continue;
      std::vector<double> differences = other->figures(name, study.few_reviews);
      for (std::size_t seed = 0; seed < differences.size(); ++seed)
        differences[seed] = values[seed] - differences[seed];
      const PairedTest test = compared(0, 1, {std::move(differences)}).test;
      entry[name]["difference"] = number_or_null(test.difference.mean);
      if (test.difference.units > 1) entry[name]["p"] = number_or_null(test.t_p);
    }
    if (row.summaries.front()["test"].contains("cold_start")) entry["cold_start"] = cold_start(row);
    table.push_back(entry);
  }
  return table;
}

std::string csv(const std::vector<RecommenderRow>& rows, const RecommendStudySettings& study) {
  std::string lines = "data,kind,sweep,value,seed,ndcg@10,ndcg@20,ndcg@50,ndcg@100\n";
  for (const RecommenderRow& row : rows) {
    for (const ordered_json& summary : row.summaries) {
      lines += fmt::format("{},{},{},{},{}", csv_field(row.data), row.kind, study.sweep,
                           csv_field(row.value), summary["seed"].get<std::int64_t>());
      for (const std::int64_t cutoff : kRankingCutoffs) {
        const ordered_json value =
            test_of(summary, study.few_reviews).value(fmt::format("ndcg@{}", cutoff), ordered_json());
        lines += "," + (value.is_number() ? csv_number(value.get<double>()) : std::string());
      }
      lines += "\n";
    }
  }
  return lines;
}

std::string text(const ordered_json& rows, const RecommendStudySettings& study, const OutputForm& form) {
  std::vector<TextTable::Column> columns = {{"data", true, 2}, {"kind", true}};
  if (!study.sweep.empty()) columns.push_back({study.sweep});
  for (const std::int64_t cutoff : kRankingCutoffs)
    columns.push_back({fmt::format("ndcg@{}", cutoff), false, cutoff == 20 ? 1 : 0});
  columns.push_back({fmt::format("p against {}, @50", study.baseline), false, 3});
  TextTable table(columns);
  for (const ordered_json& row : rows) {
    std::vector<std::string> cells = {row["data"].get<std::string>(), row["kind"].get<std::string>()};
    if (!study.sweep.empty()) cells.push_back(row["value"].get<std::string>());
    for (const std::int64_t cutoff : kRankingCutoffs) {
      const ordered_json& figure = row[fmt::format("ndcg@{}", cutoff)];
      std::string cell =
          figure["mean"].is_number() ? fmt::format("{:.4f}", figure["mean"].get<double>()) : "–";
      if (figure["half_width"].is_number())
        cell += fmt::format(" ± {:.4f}", figure["half_width"].get<double>());
      cells.push_back(cell);
    }
    const ordered_json& at_50 = row["ndcg@50"];
    cells.push_back(at_50.contains("p") && at_50["p"].is_number()
                        ? fmt::format("{:.2g}", at_50["p"].get<double>())
                        : "");
    table.add(std::move(cells));
  }
  return table.fitted(form.columns).text;
}

}  // namespace

int run_recommender_study(const RecommenderStudyRequest& request, const std::string& command,
                          const OutputForm& form, const TextSink& print) {
  RecommenderStudy plan = read_recommend_study(request.file);
  const std::string& out = request.out;
  plan.study.choose = plan.study.choose || request.choose;
  if (request.dry_run) {
    print(counted(std::ssize(plan.cells), "training") + "\n");
    return 0;
  }
  if (out.empty()) throw InvalidArgument("--out is required: name the folder of the study.");
  OutputFolder::require_own(out, FolderKind::kRecommender);
  const OutputFolder folder(out, FolderKind::kRecommender);
  folder.write_manifest(command);
  const InterruptGuard guard;
  ExecutionContext context(request.threads);
  const WorkCells store(out, {"olrank recommend study", "settings", {}});
  LatestParts latest;
  std::vector<WorkCell> cells;
  for (const RecommenderCell& cell : plan.cells)
    cells.push_back(study_cell(cell, plan.study.sweep, context, latest));
  store.compute(cells, {}, 1);
  if (InterruptGuard::requested() != 0) {
    log_info("Stopped by a signal; run the same command again to continue.");
    return InterruptGuard::exit_code(InterruptGuard::requested());
  }
  std::vector<RecommenderRow> rows;
  for (std::size_t place = 0; place < cells.size(); ++place) {
    const RecommenderCell& cell = plan.cells[place];
    const std::string kind(name_of(cell.settings.kind));
    if (rows.empty() || rows.back().data != cell.data || rows.back().kind != kind ||
        rows.back().value != cell.value)
      rows.push_back({cell.data, kind, cell.value, {}});
    rows.back().summaries.push_back(store.read(cells[place]));
  }
  if (plan.study.choose) rows = chosen_rows(rows);
  const ordered_json table = tested(rows, plan.study);
  write_file_atomically(fs::path(out) / "summary.json", dump_json(table, 2) + "\n");
  write_file_atomically(fs::path(out) / "results.csv", csv(rows, plan.study));
  print(form.json ? dump_json(table, 2) + "\n" : text(table, plan.study, form));
  return 0;
}

bool is_recommend_study(const std::filesystem::path& file) {
  const TomlDocument document = read_toml(file);
  const std::string& name = RecommendStudySettings::schema().table;
  return std::ranges::find(document.tables, name, &TomlDocument::Table::name) != document.tables.end();
}

}  // namespace olrank
