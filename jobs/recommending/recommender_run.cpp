#include "jobs/recommending/recommender_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "core/io/state_archive.h"
#include "core/runtime/progress.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "report/final_measures.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

void refuse_unread(const RecommendSettings& settings, std::string_view key, const std::string& origin) {
  if (kind_reads(settings.kind, key)) return;
  throw_error<InvalidArgument>("{} does not apply: recommenders of kind {} do not read it.",
                               setting_subject(origin, key), name_of(settings.kind));
}

void add_tests(const std::vector<std::vector<double>>& first, const std::vector<std::vector<double>>& other,
               std::vector<PairedComparison>& tests) {
  for (std::size_t cutoff = 0; cutoff < first.size(); ++cutoff) {
    assert(first[cutoff].size() == other[cutoff].size());
    std::vector<double> differences = other[cutoff];
    for (std::size_t user = 0; user < differences.size(); ++user) differences[user] -= first[cutoff][user];
    tests.push_back(compared(1, 0, {std::move(differences)}));
  }
}

}  // namespace

ordered_json figures_json(const RankingFigures& figures) {
  ordered_json json;
  ordered_json widths;
  const auto add = [&](const char* metric, const std::vector<std::vector<double>>& values) {
    for (std::size_t i = 0; i < figures.cutoffs.size(); ++i) {
      const std::string name = fmt::format("{}@{}", metric, figures.cutoffs[i]);
      const MeanInterval interval = mean_interval({values[i]});
      json[name] = number_or_null(interval.mean);
      widths[name] = number_or_null(interval.half_width);
    }
  };
  add("ndcg", figures.ndcg);
  add("hit", figures.hits);
  json["users"] = figures.users.size();
  json["left_out_users"] = figures.without_training;
  json["half_width"] = widths;
  return json;
}

ordered_json JudgedPart::json() const {
  ordered_json json = figures_json(figures.back());
  if (figures.size() == 1) return json;
  ordered_json known = ordered_json::array();
  for (std::size_t count = 0; count < figures.size(); ++count) {
    ordered_json entry = {{"known_reviews", count}};
    entry.update(figures_json(figures[count]));
    known.push_back(entry);
  }
  json["cold_start"] = known;
  return json;
}

JudgedPart judge_test_part(ExecutionContext& context, const Recommender& model, const ReviewParts& parts,
                           const RecommendSettings& settings) {
  const RankingOptions options = {.gain = settings.gain};
  if (settings.split == SplitBy::kReviews)
    return {{judge_recommender(context, model, parts.training, parts.split.test, options)}};
  JudgedPart judged;
  for (std::int64_t known = 0; known <= kMostKnownReviews; ++known) {
    judged.figures.push_back(judge_cold_start(context, model, parts.reviews, parts.split.test, known,
                                              kMostKnownReviews, options));
  }
  return judged;
}

RecommenderRun::RecommenderRun(const RecommendSettings& settings, const ReviewParts& parts,
                               ExecutionContext& context)
    : given_(settings),
      settings_(resolved(settings)),
      parts_(parts),
      context_(context),
      training_(recommender_kind(settings_.kind).start(settings_, parts.training)) {
  if (settings_.split == SplitBy::kUsers && !training_->model().scores_new_users()) {
    throw_error<InvalidArgument>(
        "split = users judges new users, which a recommender of kind {} does not know: use another kind, "
        "or split = reviews.",
        name_of(settings_.kind));
  }
}

bool RecommenderRun::finished() const {
  return training_->finished() || (settings_.patience > 0 && validations_since_best_ >= settings_.patience);
}

ordered_json RecommenderRun::advance() {
  const Stopwatch begun;
  const TrainingPassReport report = training_->advance(context_);
  const double took = begun.seconds();
  training_seconds_ += took;
  entries_ += report.entries;
  pairs_ += report.pairs;
  ordered_json point = {{"pass", report.pass}};
  for (const auto& [name, value] : report.losses) point[name] = number_or_null(value);
  const bool last = training_->finished();
  if (!parts_.split.validation.empty() && (last || report.pass % settings_.eval_every == 0)) {
    const double ndcg = judge_recommender(context_, training_->model(), parts_.training,
                                          parts_.split.validation, {{settings_.cutoff}, settings_.gain})
                            .mean_ndcg(0);
    point["validation"] = {{fmt::format("ndcg@{}", settings_.cutoff), number_or_null(ndcg)}};
    ++validations_since_best_;
    if (!best_ || ndcg > *best_) {
      best_ = ndcg;
      validations_since_best_ = 0;
      if (settings_.keep == KeptPass::kBest) {
        kept_pass_ = report.pass;
        kept_model_ = recommender_bytes(training_->model());
      }
    }
  }
  if (finished() && (settings_.keep == KeptPass::kLast || kept_model_.empty())) {
    kept_pass_ = report.pass;
    kept_model_ = recommender_bytes(training_->model());
  }
  point["seconds"] = took;
  return point;
}

void RecommenderRun::training_fields(StateFields& state) {
  double best = best_.value_or(std::numeric_limits<double>::quiet_NaN());
  state.numbers("run.counts", kept_pass_, validations_since_best_, entries_, pairs_);
  state.numbers("run.numbers", best, training_seconds_);
  if (!std::isnan(best)) best_ = best;
  state.text("run.kept_model", kept_model_);
  state.part(*training_);
}

ordered_json RecommenderRun::summary() const {
  ordered_json summary = {{"kind", name_of(settings_.kind)},
                          {"seed", settings_.seed},
                          {"data", describe_parts(parts_)},
                          {"passes", training_->passed()},
                          {"kept_pass", kept_pass_}};
  if (best_) summary["validation"] = {{fmt::format("ndcg@{}", settings_.cutoff), number_or_null(*best_)}};
  const std::unique_ptr<Recommender> kept =
      recommender_of_bytes(kept_model_, "the kept model", settings_.kind, counts_of(parts_.reviews));
  const JudgedPart judged = judge_test_part(context_, *kept, parts_, settings_);
  summary["test"] = judged.json();
  if (settings_.split == SplitBy::kReviews) {
    ordered_json few = figures_json(figures_of_few_reviews(judged.last(), parts_.training, kFewReviews));
    few.erase("left_out_users");  // they are not of the test's users
    summary["test"]["few_reviews"] = few;
  }
  summary["training"] = training_->facts();
  summary["training"]["seconds"] = training_seconds_;
  summary["training"]["entries"] = entries_;
  summary["training"]["pairs"] = pairs_;
  return summary;
}

void RecommenderRun::finish(JobFolder& folder, const Recipe& recipe) const {
  const std::array<ResultFile, 1> files = {
      {{JobFolder::kModelFile, recommender_file(given_, parts_, kept_model_)}}};
  Fingerprinter fingerprint;
  fingerprint.add(untimed_curve());
  fingerprint.add(kept_model_);
  ordered_json about = summary();
  about["seconds"] = folder.seconds();
  about["result_fingerprint"] = fingerprint.value().hex();
  folder.finish(*this, recipe, files, std::move(about));
}

Recipe recommender_recipe(const RecommendSettings& settings, const ReviewParts& parts) {
  return {{"settings", print_recommend_settings(resolved(settings))}, {"data", parts.fingerprint.hex()}};
}

std::string plan_recommender_memory(const RecommendSettings& settings, const ReviewParts& parts,
                                    int threads, std::int64_t allowed) {
  const std::int64_t bytes =
      recommender_kind(settings.kind).plan(settings, parts.training.counts(), threads);
  if (bytes > allowed) {
    throw_error<InvalidArgument>(
        "Training {} with these dimensions needs {} of memory and may use {}: choose smaller dimensions or "
        "batches, or raise --max-memory.",
        name_of(settings.kind), readable_bytes(static_cast<double>(bytes)),
        readable_bytes(static_cast<double>(allowed)));
  }
  return fmt::format("Training {} needs {} of memory.", name_of(settings.kind),
                     readable_bytes(static_cast<double>(bytes)));
}

std::span<const SchemaWithDefaults> recommend_tables() {
  static const RecommendSettings defaults;
  static const std::array<SchemaWithDefaults, 1> tables = {{{&RecommendSettings::schema(), &defaults}}};
  return tables;
}

RecommendSettings resolve_recommend_settings(const TomlDocument& document,
                                             std::span<const SettingOverride> overrides,
                                             std::string_view other) {
  const Schema& schema = RecommendSettings::schema();
  const SettingSources sources(document, overrides);
  std::vector<std::string> tables = {schema.table};
  if (!other.empty()) tables.emplace_back(other);
  sources.require_tables(tables, "olrank recommend");
  RecommendSettings settings;
  // The kind decides the defaults of the rest.
  sources.apply(schema, &settings, [](const std::string& key, const auto&) { return key == "kind"; });
  settings = default_settings(settings.kind);
  std::vector<std::pair<std::string, std::string>> given;
  sources.apply(schema, &settings, [&](const std::string& key, const std::string& origin) {
    if (key != "kind") given.emplace_back(key, origin);
    return key != "kind";
  });
  for (const auto& [key, origin] : given) refuse_unread(settings, key, origin);
  check_recommend_settings(settings);
  return settings;
}

RecommendSettings resolve_recommend_settings(const std::optional<std::filesystem::path>& file,
                                             std::span<const SettingOverride> overrides) {
  return resolve_recommend_settings(file ? read_toml(*file) : TomlDocument{}, overrides);
}

std::string print_recommend_settings(const RecommendSettings& settings) {
  return print_settings(RecommendSettings::schema(), &settings,
                        [&](const Setting& setting) { return kind_reads(settings.kind, setting.key); });
}

std::vector<ordered_json> compared_with_first(std::span<const RankingFigures> judged) {
  std::vector<PairedComparison> tests;
  for (std::size_t other = 1; other < judged.size(); ++other) {
    add_tests(judged[0].ndcg, judged[other].ndcg, tests);
    add_tests(judged[0].hits, judged[other].hits, tests);
  }
  correct(tests);
  std::vector<ordered_json> comparisons;
  auto test = tests.begin();
  for (std::size_t other = 1; other < judged.size(); ++other) {
    ordered_json& comparison = comparisons.emplace_back(ordered_json::object());
    for (const char* metric : {"ndcg", "hit"}) {
      for (const std::int64_t cutoff : judged[0].cutoffs) {
        comparison[fmt::format("{}@{}", metric, cutoff)] = {
            {"difference", number_or_null(test->test.difference.mean)},
            {"p", number_or_null(test->test.t_p)},
            {"p_holm", number_or_null(test->t_holm)}};
        ++test;
      }
    }
  }
  return comparisons;
}

}  // namespace olrank
