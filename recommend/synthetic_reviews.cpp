#include "recommend/synthetic_reviews.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "recommend/synthetic_factors.h"
#include "recommend/synthetic_trees.h"

namespace olrank {
namespace {

constexpr std::string_view kSyntheticPrefix = "synth:";

/// Reads the settings of a generator from the keys of its source.
template <class Settings, Reviews (*kMake)(ExecutionContext&, const Settings&)>
Reviews make_from_keys(ExecutionContext& context, const SourceKeys& keys) {
  const Schema& schema = Settings::schema();
  Settings settings;
  for (const auto& [key, value] : keys) {
    if (schema.find(key) == nullptr) {
      throw_error<InvalidArgument>("The generator '{}' has no key '{}'. {}", schema.table, key,
                                   did_you_mean(key, schema.keys()));
    }
    assign_setting_text(schema, &settings, key, value, fmt::format("synth:{}", schema.table));
  }
  return kMake(context, settings);
}

constexpr std::array kGenerators = {
    ReviewGenerator{"factors", "users, items, features and phrases with planted non-negative factors",
                    PlantedFactors::schema, make_from_keys<PlantedFactors, make_factor_reviews>},
    ReviewGenerator{"trees", "users and items whose factors planted trees over mentioned features decide",
                    PlantedTrees::schema, make_from_keys<PlantedTrees, make_tree_reviews>},
};

const ReviewGenerator& generator_named(std::string_view name) {
  std::vector<std::string> names;
  for (const ReviewGenerator& generator : kGenerators) {
    if (generator.name == name) return generator;
    names.emplace_back(generator.name);
  }
  throw_error<InvalidArgument>("There is no generator of reviews '{}', only {}. {}", name, joined(names),
                               did_you_mean(name, names));
}

SourceKeys keys_in(std::string_view text, std::string_view source) {
  SourceKeys keys;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw_error<InvalidArgument>("'{}': Keys are written key=value and separated by '&', not '{}'.",
                                   source, part);
    }
    keys.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return keys;
}

}  // namespace

std::span<const ReviewGenerator> review_generators() {
  return kGenerators;
}

bool is_synthetic_reviews(std::string_view source) {
  return source.starts_with(kSyntheticPrefix);
}

Reviews make_synthetic_reviews(ExecutionContext& context, std::string_view source) {
  std::string_view rest = source;
  if (is_synthetic_reviews(rest)) rest.remove_prefix(kSyntheticPrefix.size());
  const std::size_t question = std::min(rest.find('?'), rest.size());
  const ReviewGenerator& generator = generator_named(rest.substr(0, question));
  const SourceKeys keys = keys_in(rest.substr(std::min(question + 1, rest.size())), source);
  return generator.make(context, keys);
}

std::vector<std::int64_t> planted_review_counts(std::int64_t users, std::int64_t reviews, double least,
                                                std::int64_t most, PhiloxKey key) {
  std::vector<double> weights(users);
  for (std::int64_t user = 0; user < users; ++user) {
    RngStream random(key, static_cast<std::uint32_t>(user));
    weights[user] = least + exponential_draw(random);
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> counts(users);
  double owed = 0.0;
  for (std::int64_t user = 0; user < users; ++user) {
    owed += static_cast<double>(reviews) * weights[user] / sum;
    counts[user] = std::clamp<std::int64_t>(std::llround(owed), 1, most);
    owed -= static_cast<double>(counts[user]);
  }
  return counts;
}

std::string planted_feature_name(std::int64_t feature) {
  return fmt::format("feature{:03}", feature);
}

Reviews named_reviews(std::span<std::vector<WrittenReview>> written) {
  Reviews reviews;
  std::vector<Mention> said;
  for (std::size_t user = 0; user < written.size(); ++user) {
    if (written[user].empty()) continue;
    const std::int32_t by = reviews.names.users.intern(fmt::format("user{:05}", user));
    for (const WrittenReview& review : written[user]) {
      said.clear();
      for (const Mention& mention : review.mentions) {
        said.push_back(
            {reviews.names.features.intern(planted_feature_name(mention.feature)),
             reviews.names.phrases.intern(fmt::format("phrase{:03}-{}", mention.feature, mention.phrase)),
             mention.sentiment});
      }
      reviews.add(by, reviews.names.items.intern(fmt::format("item{:05}", review.item)), review.rating,
                  said);
    }
    written[user] = {};
  }
  return reviews;
}

}  // namespace olrank
