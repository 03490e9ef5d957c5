#include "jobs/recommending/recommender_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/data/synthetic_source.h"
#include "core/io/state_archive.h"
#include "core/settings/toml_document.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/recommending/recommender_run.h"
#include "recommend/synthetic_reviews.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTrainAgain = "train it again";

/// The nearest of many names; without searching all of very many.
std::string nearest_of(const NameTable& table, const std::string& name) {
  constexpr std::int64_t kSearched = 20'000;
  std::vector<std::string> names;
  for (std::int64_t number = 0; number < std::min(table.size(), kSearched); ++number)
    names.emplace_back(table[number]);
  const std::string near = near_name(name, names);
  return near.empty() ? std::string() : fmt::format(" Did you mean '{}'?", near);
}

RatingRows read_seen(StateReader& state, const ReviewCounts& counts) {
  RatingRows seen;
  seen.ends = state.get<std::int64_t>("seen.ends");
  seen.others = state.get<std::int32_t>("seen.items");
  if (!are_rows(seen.ends, counts.users, seen.others, counts.items))
    state.fail("The list of what users have seen is damaged.");
  return seen;
}

Fingerprint fingerprint_of_reviews(const Reviews& reviews) {
  Fingerprinter fingerprint;
  for (const NameTable* names :
       {&reviews.names.users, &reviews.names.items, &reviews.names.features, &reviews.names.phrases}) {
    for (std::int64_t number = 0; number < names->size(); ++number) {
      fingerprint.add((*names)[number]);
      fingerprint.add(std::string_view("\n"));
    }
  }
  fingerprint.add(std::span<const std::int32_t>(reviews.user));
  fingerprint.add(std::span<const std::int32_t>(reviews.item));
  fingerprint.add(std::span<const float>(reviews.rating));
  fingerprint.add(std::span<const std::int64_t>(reviews.mention_ends));
  for (const Mention& mention : reviews.mentions) {
    const std::int32_t numbers[] = {mention.feature, mention.phrase, mention.sentiment};
    fingerprint.add(std::span<const std::int32_t>(numbers));
  }
  return fingerprint.value();
}

}  // namespace

std::int64_t LoadedRecommender::user(const std::string& name) const {
  const auto number = names.users.find(name);
  if (!number) {
    throw_error<InvalidArgument>("The model knows no user '{}'.{}", name, nearest_of(names.users, name));
  }
  if (seen.count(*number) == 0)
    throw_error<InvalidArgument>("User '{}' has no review in the training part of this model.", name);
  return *number;
}

std::int64_t LoadedRecommender::item(const std::string& name) const {
  const auto number = names.items.find(name);
  if (number) return *number;
  throw_error<InvalidArgument>("The model knows no item '{}'.{}", name, nearest_of(names.items, name));
}

std::string recommender_bytes(const Recommender& model) {
  StateWriter state;
  model.save(state);
  return state.bytes();
}

std::string recommender_file(const RecommendSettings& settings, const ReviewParts& parts,
                             const std::string& model) {
  StateWriter state;
  state.put_text("olrank.recommender", "1");
  state.put_text("settings", print_recommend_settings(settings));
  state.put_text("fingerprint", parts.fingerprint.hex());
  parts.reviews.names.users.save(state, "users");
  parts.reviews.names.items.save(state, "items");
  parts.reviews.names.features.save(state, "features");
  parts.reviews.names.phrases.save(state, "phrases");
  state.put("seen.ends", parts.training.by_user.ends);
  state.put("seen.items", parts.training.by_user.others);
  state.put_text("model", model);
  return state.bytes();
}

std::unique_ptr<Recommender> recommender_of_bytes(const std::string& bytes, const std::string& origin,
                                                  RecommenderKind kind, const ReviewCounts& counts) {
  StateReader state(bytes, origin, kTrainAgain);
  std::unique_ptr<Recommender> model = recommender_kind(kind).read(state, counts);
  state.require_end();
  return model;
}

LoadedRecommender read_recommender(const fs::path& path) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? path / "model.safetensors" : path;
  StateReader state = read_state_file(file, kTrainAgain);
  if (!state.is_next("olrank.recommender")) state.fail("This is not a model of 'olrank recommend train'.");
  state.get_text("olrank.recommender");
  LoadedRecommender loaded;
  loaded.settings = resolve_recommend_settings(parse_toml(state.get_text("settings"), file.string()), {});
  loaded.fingerprint = state.get_text("fingerprint");
  loaded.names.users.load(state, "users");
  loaded.names.items.load(state, "items");
  loaded.names.features.load(state, "features");
  loaded.names.phrases.load(state, "phrases");
  const ReviewCounts counts = loaded.names.counts();
  loaded.seen = read_seen(state, counts);
  loaded.model = recommender_of_bytes(state.get_text("model"), file.string(), loaded.settings.kind, counts);
  return loaded;
}

std::unique_ptr<const ReviewParts> load_review_parts(const RecommendSettings& settings,
                                                     ExecutionContext& context) {
  if (settings.data.empty())
    throw InvalidArgument("No data given: name a file of reviews or \"synth:factors\" with --data.");
  auto parts = std::make_unique<ReviewParts>();
  parts->reviews = is_synthetic(settings.data) ? make_synthetic_reviews(context, settings.data)
                                               : read_reviews(settings.data, settings.scale);
  parts->reviews.highest_rating = settings.scale;
  parts->merged = merge_repeated_reviews(parts->reviews);
  if (settings.frequent_features > 0) keep_frequent_features(parts->reviews, settings.frequent_features);
  parts->filtered = filter_reviews(parts->reviews, {settings.feature_support, settings.review_support,
                                                    settings.item_support, settings.user_support});
  if (parts->reviews.size() == 0) {
    throw_error<InvalidArgument>(
        "No review of '{}' is left: lower feature_support, review_support, item_support or user_support.",
        settings.data);
  }
  parts->fingerprint = fingerprint_of_reviews(parts->reviews);
  parts->split = split_reviews(parts->reviews, settings.split_settings());
  parts->training = make_training_data(parts->reviews, parts->split.train);
  if (parts->split.train.empty())
    throw_error<InvalidArgument>("No review of '{}' is in the training part.", settings.data);
  for (std::int64_t user = 0; user < parts->training.by_user.rows(); ++user)
    parts->untrained_users += parts->training.by_user.count(user) == 0 ? 1 : 0;
  return parts;
}

nlohmann::ordered_json describe_parts(const ReviewParts& parts) {
  const ReviewCounts counts = counts_of(parts.reviews);
  return {{"users", counts.users},
          {"items", counts.items},
          {"features", counts.features},
          {"phrases", counts.phrases},
          {"reviews", counts.reviews},
          {"mentions", counts.mentions},
          {"merged_reviews", parts.merged},
          {"filtered",
           {{"users", parts.filtered.users},
            {"items", parts.filtered.items},
            {"features", parts.filtered.features},
            {"reviews", parts.filtered.reviews},
            {"mentions", parts.filtered.mentions}}},
          {"train_reviews", parts.split.train.size()},
          {"validation_reviews", parts.split.validation.size()},
          {"test_reviews", parts.split.test.size()},
          {"users_without_training", parts.untrained_users},
          {"fingerprint", parts.fingerprint.hex()}};
}

std::string parts_text(const ReviewParts& parts) {
  const ReviewCounts counts = counts_of(parts.reviews);
  std::string text = fmt::format(
      "{} by {} of {} with {} and {}; {} to train on, {} for validation, {} for the test",
      counted(counts.reviews, "review"), counted(counts.users, "user"), counted(counts.items, "item"),
      counted(counts.features, "feature"), counted(counts.phrases, "phrase"), parts.split.train.size(),
      parts.split.validation.size(), parts.split.test.size());
  if (parts.merged > 0) text += fmt::format("; {} merged", counted(parts.merged, "repeated review"));
  if (parts.filtered.reviews > 0)
    text += fmt::format("; {} filtered", counted(parts.filtered.reviews, "review"));
  if (parts.untrained_users > 0)
    text += fmt::format("; {} without a training review left out", counted(parts.untrained_users, "user"));
  return text;
}

}  // namespace olrank
