#include "recommend/synthetic_reviews.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "recommend/ranking_figures.h"
#include "recommend/trees/factor_tree.h"

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

Reviews make_synthetic_reviews(ExecutionContext& context, std::string_view source) {
  const std::string_view rest =
      source.starts_with(kSyntheticPrefix) ? source.substr(kSyntheticPrefix.size()) : source;
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

namespace {

/// Every draw is for one of these, a member of its key.
enum class TreeDraw : std::uint64_t {
  kUserTree = 1,
  kItemTree,
  kUser,
  kItem,
  kCount,
  kPopularity,
  kReview
};

PhiloxKey tree_key(std::int64_t seed, TreeDraw draw) {
  return make_key({.seed = static_cast<std::uint64_t>(seed),
                   .purpose = Purpose::kSynthetic,
                   .fold = 2,
                   .member = static_cast<std::uint64_t>(draw)});
}

PlantedTree planted_tree(const PlantedTrees& settings, TreeDraw draw) {
  return PlantedTree({.levels = settings.levels,
                      .features = settings.features,
                      .dimension = settings.dimension,
                      .key = tree_key(settings.seed, draw)});
}

/// Items by popularity: cumulative shares, to be searched with a uniform draw.
class PopularItems {
 public:
  explicit PopularItems(const PlantedTrees& settings) : order_(settings.items), until_(settings.items) {
    std::iota(order_.begin(), order_.end(), 0);
    RngStream random(tree_key(settings.seed, TreeDraw::kPopularity), 0);
    random.shuffle(std::span<std::int32_t>(order_));
    double sum = 0.0;
    for (std::int64_t place = 0; place < settings.items; ++place) {
      sum += std::pow(static_cast<double>(place + 1), -settings.popularity);
      until_[place] = sum;
    }
  }

  std::int32_t draw(RngStream& random) const {
    const double wanted = random.uniform() * until_.back();
    const auto place = std::ranges::upper_bound(until_, wanted) - until_.begin();
    return order_[std::min<std::ptrdiff_t>(place, std::ssize(order_) - 1)];
  }

 private:
  std::vector<std::int32_t> order_;
  std::vector<double> until_;
};

/// The habits say what features weigh in the reviews of a user or an item, and how likely praise is.
struct FeatureHabits {
  std::vector<double> weights;
  std::vector<double> praise;
};

double zipf_weight(std::int64_t feature) {
  return 1.0 / static_cast<double>(feature + 1);
}

/// A user mentions often what the path emphasises, and never what a branch does not know.
FeatureHabits habits_of_user(const PlantedTrees& settings, const PlantedTree::Place& place) {
  FeatureHabits habits;
  double all = 0.0;
  for (std::int64_t feature = 0; feature < settings.features; ++feature) {
    habits.weights.push_back(zipf_weight(feature));
    all += zipf_weight(feature);
  }
  for (std::size_t level = 0; level < place.features.size(); ++level) {
    double& weight = habits.weights[place.features[level]];
    if (place.branches[level] == TreeBranch::kAtLeast) weight = 0.4 * all;
    if (place.branches[level] == TreeBranch::kBelow) weight = 0.08 * all;
    if (place.branches[level] == TreeBranch::kUnknown) weight = 0.0;
  }
  return habits;
}

/// Reviews praise what an item is good at, and do not speak of what it does not have.
FeatureHabits habits_of_item(const PlantedTrees& settings, const PlantedTree::Place& place) {
  FeatureHabits habits;
  habits.weights.assign(settings.features, 1.0);
  habits.praise.assign(settings.features, 0.6);
  for (std::size_t level = 0; level < place.features.size(); ++level) {
    const std::int64_t feature = place.features[level];
    const TreeBranch branch = place.branches[level];
    habits.praise[feature] = branch == TreeBranch::kAtLeast ? 0.95 : 0.2;
    habits.weights[feature] = branch == TreeBranch::kUnknown ? 0.0 : 2.0;
  }
  return habits;
}

class TreeReviewWriter {
 public:
  explicit TreeReviewWriter(const PlantedTrees& settings)
      : settings_(settings),
        user_tree_(planted_tree(settings, TreeDraw::kUserTree)),
        item_tree_(planted_tree(settings, TreeDraw::kItemTree)),
        popular_(settings) {
    for (std::int64_t item = 0; item < settings.items; ++item) {
      const PlantedTree::Place place =
          item_tree_.draw_place(tree_key(settings.seed, TreeDraw::kItem), item, settings.personal);
      items_.push_back(habits_of_item(settings, place));
      item_factors_.push_back(place.factor);
    }
  }

  std::vector<WrittenReview> write(std::int64_t user, std::int64_t count) const {
    const PlantedTree::Place place =
        user_tree_.draw_place(tree_key(settings_.seed, TreeDraw::kUser), user, settings_.personal);
    const FeatureHabits habits = habits_of_user(settings_, place);
    std::vector<WrittenReview> written;
    for (std::int64_t number = 0; number < count; ++number) {
      RngStream random(tree_key(settings_.seed, TreeDraw::kReview), static_cast<std::uint32_t>(user),
                       static_cast<std::uint32_t>(number));
      const std::int32_t item = choose(place.factor, written, random);
      if (item < 0) continue;
      const double rated = 3.3 + 0.9 * preference(place.factor, item) + settings_.noise * random.normal();
      written.push_back({item, static_cast<float>(std::clamp(std::round(rated), 1.0, 5.0)),
                         mention_features(habits, items_[item], random)});
    }
    return written;
  }

 private:
  /// The preference has unit variance.
  double preference(const std::vector<double>& user, std::int32_t item) const {
    double sum = 0.0;
    for (std::size_t k = 0; k < user.size(); ++k) sum += user[k] * item_factors_[item][k];
    return sum / std::sqrt(static_cast<double>(user.size()));
  }

  /// Looks at some items, as popular as they are, and takes the one that pleases most; −1 if all were
  /// reviewed before.
  std::int32_t choose(const std::vector<double>& user, const std::vector<WrittenReview>& before,
                      RngStream& random) const {
    constexpr int kLooks = 20;
    std::int32_t best = -1;
    double best_key = 0.0;
    for (int look = 0; look < kLooks; ++look) {
      const std::int32_t item = popular_.draw(random);
      const double key = settings_.taste * preference(user, item) + gumbel_draw(random);
      if (best >= 0 && key <= best_key) continue;
      const bool reviewed =
          std::ranges::any_of(before, [&](const WrittenReview& review) { return review.item == item; });
      if (reviewed) continue;
      best = item;
      best_key = key;
    }
    return best;
  }

  /// Draws without repetition: the largest of log-weights plus Gumbel noise.
  std::vector<Mention> mention_features(const FeatureHabits& user, const FeatureHabits& item,
                                        RngStream& random) const {
    std::vector<double> keys;
    std::vector<std::int32_t> features;
    for (std::int32_t feature = 0; feature < settings_.features; ++feature) {
      const double weight = user.weights[feature] * item.weights[feature];
      if (weight <= 0.0) continue;
      keys.push_back(std::log(weight) + gumbel_draw(random));
      features.push_back(feature);
    }
    std::vector<Mention> mentions;
    const auto praises = static_cast<std::uint32_t>((settings_.phrases + 1) / 2);
    const auto faults = static_cast<std::uint32_t>(settings_.phrases) - praises;
    for (const std::int32_t place : largest_places(keys, settings_.mentions)) {
      const std::int32_t feature = features[place];
      const bool praised = random.uniform() < item.praise[feature];
      const std::uint32_t phrase = praised ? random.index(praises) : praises + random.index(faults);
      mentions.push_back(
          {feature, static_cast<std::int32_t>(phrase), static_cast<std::int8_t>(praised ? 1 : -1)});
    }
    return mentions;
  }

  const PlantedTrees& settings_;
  PlantedTree user_tree_;
  PlantedTree item_tree_;
  PopularItems popular_;
  std::vector<FeatureHabits> items_;
  std::vector<std::vector<double>> item_factors_;
};

}  // namespace

const Schema& PlantedTrees::schema() {
  using S = PlantedTrees;
  static const Schema schema =
      SchemaBuilder<S>("trees", "Reviews with planted trees of users and of items.")
          .field("users", &S::users, "users", {1, 10'000'000})
          .field("items", &S::items, "items", {2, 1'000'000})
          .field("features", &S::features, "features, Zipf-distributed", {2, 10'000})
          .field("phrases", &S::phrases, "phrases of each feature, half of them praise", {2, 1000})
          .field("reviews", &S::reviews, "reviews of all users together", {1, 1'000'000'000})
          .field("mentions", &S::mentions, "mentioned features of a review", {1, 50})
          .field("levels", &S::levels, "levels of questions in each planted tree", {1, 6})
          .field("dimension", &S::dimension, "length of the planted vectors", {1, 64})
          .field("personal", &S::personal,
                 "standard deviation of personal terms; the branches of a root have 1", {0, 100})
          .field("taste", &S::taste,
                 "logits that a standard deviation of preference adds when users choose what to review",
                 {0, 100})
          .field("popularity", &S::popularity, "exponent of the items' Zipf distribution", {0, 10})
          .field("noise", &S::noise, "standard deviation of a rating's error", {0, 100})
          .field("seed", &S::seed, "seed", {0})
          .build();
  return schema;
}

Reviews make_tree_reviews(ExecutionContext& context, const PlantedTrees& settings) {
  if (settings.reviews > settings.users * settings.items / 4) {
    throw_error<InvalidArgument>(
        "{} reviews are more than a quarter of {} users × {} items: ask for fewer.", settings.reviews,
        settings.users, settings.items);
  }
  const TreeReviewWriter writer(settings);
  const std::vector<std::int64_t> counts = planted_review_counts(
      settings.users, settings.reviews, 0.1, std::max<std::int64_t>(settings.items / 2, 1),
      tree_key(settings.seed, TreeDraw::kCount));
  std::vector<std::vector<WrittenReview>> written(settings.users);
  context.for_blocks(settings.users, 32, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t user = begin; user < end; ++user) written[user] = writer.write(user, counts[user]);
  });
  return named_reviews(written);
}

std::string planted_root(const PlantedTrees& settings) {
  return planted_feature_name(planted_tree(settings, TreeDraw::kUserTree).root_feature());
}

}  // namespace olrank
