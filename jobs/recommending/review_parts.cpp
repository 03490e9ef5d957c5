#include "jobs/recommending/review_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/counted.h"
#include "recommend/review_reader.h"
#include "recommend/synthetic_reviews.h"

namespace olrank {
namespace {

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

std::unique_ptr<const ReviewParts> load_review_parts(const RecommendSettings& settings,
                                                     ExecutionContext& context) {
  if (settings.data.empty())
    throw InvalidArgument("No data given: name a file of reviews or \"synth:factors\" with --data.");
  auto parts = std::make_unique<ReviewParts>();
  parts->reviews = is_synthetic_reviews(settings.data) ? make_synthetic_reviews(context, settings.data)
                                                       : read_reviews(settings.data, settings.scale);
  parts->reviews.highest_rating = settings.scale;
  parts->merged = merge_repeated_reviews(parts->reviews);
  if (settings.frequent_features > 0) keep_frequent_features(parts->reviews, settings.frequent_features);
  parts->filtered = filter_reviews(parts->reviews, {settings.feature_support, settings.review_support,
                                                    settings.item_support, settings.user_support});
  if (parts->reviews.size() == 0) {
    throw InvalidArgument(fmt::format(
        "No review of '{}' is left: lower feature_support, review_support, item_support or user_support.",
        settings.data));
  }
  parts->fingerprint = fingerprint_of_reviews(parts->reviews);
  parts->split = split_reviews(parts->reviews, settings.split_settings());
  parts->training = make_training_data(parts->reviews, parts->split.train);
  if (parts->split.train.empty())
    throw InvalidArgument(fmt::format("No review of '{}' is in the training part.", settings.data));
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
