#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/math/pair_loss.h"
#include "core/random/rng_stream.h"
#include "core/throw_error.h"
#include "recommend/ranking_figures.h"
#include "recommend/synthetic_reviews.h"

namespace olrank {
namespace {

constexpr std::int64_t kUsersTogether = 32;

/// Every draw of the generator is for one of these, a member of its key.
enum class PlantedDraw : std::uint64_t {
  kUser = 1,
  kItem,
  kFeature,
  kPhrase,
  kCore,
  kCount,
  kChoice,
  kReview,
  kScale
};

PhiloxKey planted_key(std::int64_t seed, PlantedDraw draw) {
  return make_key({.seed = static_cast<std::uint64_t>(seed),
                   .purpose = Purpose::kSynthetic,
                   .fold = 1,
                   .member = static_cast<std::uint64_t>(draw)});
}

/// Rows of non-negative numbers, most of them small and some large, each row with mean 1.
std::vector<double> planted_rows(std::int64_t rows, std::int64_t columns, PhiloxKey key) {
  std::vector<double> values(rows * columns);
  for (std::int64_t row = 0; row < rows; ++row) {
    RngStream random(key, static_cast<std::uint32_t>(row));
    double sum = 0.0;
    for (std::int64_t column = 0; column < columns; ++column) {
      const double draw = exponential_draw(random);
      values[row * columns + column] = draw * draw;
      sum += draw * draw;
    }
    for (std::int64_t column = 0; column < columns; ++column)
      values[row * columns + column] *= static_cast<double>(columns) / sum;
  }
  return values;
}

struct Standard {
  double mean = 0.0;
  double deviation = 1.0;
  double of(double value) const { return (value - mean) / deviation; }
};

Standard standard_of(std::span<const double> values) {
  Standard standard;
  standard.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double squares = 0.0;
  for (const double value : values) squares += (value - standard.mean) * (value - standard.mean);
  standard.deviation = std::max(std::sqrt(squares / static_cast<double>(values.size())), 1e-9);
  return standard;
}

/// The planted model: who likes what how much.
class PlantedModel {
 public:
  explicit PlantedModel(const PlantedFactors& settings)
      : settings_(settings),
        d_(settings.dimension),
        users_(planted_rows(settings.users, d_, planted_key(settings.seed, PlantedDraw::kUser))),
        items_(planted_rows(settings.items, d_, planted_key(settings.seed, PlantedDraw::kItem))),
        features_(
            planted_rows(settings.features + 1, d_, planted_key(settings.seed, PlantedDraw::kFeature))),
        phrases_(planted_rows(settings.features * settings.phrases, d_,
                              planted_key(settings.seed, PlantedDraw::kPhrase))) {
    // The overall rating looks at all dimensions.
    for (std::int64_t v = 0; v < d_; ++v) features_[settings.features * d_ + v] = 1.0;
    RngStream random(planted_key(settings.seed, PlantedDraw::kCore), 0);
    for (std::vector<double>* core : {&preference_, &of_users_, &of_items_}) {
      core->resize(d_ * d_ * d_);
      for (std::int64_t place = 0; place < d_ * d_ * d_; ++place) {
        const bool diagonal = place % (d_ * d_ + d_ + 1) == 0;
        (*core)[place] = diagonal ? 1.0 : 0.2 / static_cast<double>(d_ * d_) * exponential_draw(random);
      }
    }
    // The mean and the deviation over random places.
    random = RngStream(planted_key(settings.seed, PlantedDraw::kScale), 0);
    std::vector<double> overall;
    std::vector<double> by_item;
    std::vector<double> meets(d_);
    for (int sample = 0; sample < 4000; ++sample) {
      contract_user(random.index_of(settings.users), by_item);
      contract_item(by_item, random.index_of(settings.items), meets);
      overall.push_back(meet(meets, settings.features));
    }
    overall_ = standard_of(overall);
  }

  std::int64_t dimension() const { return d_; }

  /// G1 ×_a U_i: d × d, from items' to features' dimensions.
  void contract_user(std::int64_t user, std::vector<double>& by_item) const {
    by_item.assign(d_ * d_, 0.0);
    for (std::int64_t r = 0; r < d_; ++r) {
      for (std::int64_t place = 0; place < d_ * d_; ++place)
        by_item[place] += users_[user * d_ + r] * preference_[r * d_ * d_ + place];
    }
  }
  void contract_item(const std::vector<double>& by_item, std::int64_t item, std::span<double> meets) const {
    std::fill(meets.begin(), meets.end(), 0.0);
    for (std::int64_t t = 0; t < d_; ++t) {
      for (std::int64_t v = 0; v < d_; ++v) meets[v] += items_[item * d_ + t] * by_item[t * d_ + v];
    }
  }
  double meet(std::span<const double> meets, std::int64_t feature) const {
    double sum = 0.0;
    for (std::int64_t v = 0; v < d_; ++v) sum += meets[v] * features_[feature * d_ + v];
    return sum;
  }
  void preferences(std::int64_t user, std::vector<double>& by_item, std::span<double> all) const {
    contract_user(user, by_item);
    std::vector<double> direction(d_, 0.0);
    for (std::int64_t t = 0; t < d_; ++t) {
      for (std::int64_t v = 0; v < d_; ++v)
        direction[t] += by_item[t * d_ + v] * features_[settings_.features * d_ + v];
    }
    for (std::int64_t item = 0; item < settings_.items; ++item) {
      double sum = 0.0;
      for (std::int64_t t = 0; t < d_; ++t) sum += items_[item * d_ + t] * direction[t];
      all[item] = overall_.of(sum);
    }
  }
  /// How natural a phrase about a feature is to the user and fitting for the item: Ŷ^U · Ŷ^I.
  double phrase_weight(std::int64_t user, std::int64_t item, std::int64_t feature,
                       std::int64_t phrase) const {
    return tucker(of_users_, &users_[user * d_], feature, phrase) *
           tucker(of_items_, &items_[item * d_], feature, phrase);
  }

 private:
  double tucker(const std::vector<double>& core, const double* row, std::int64_t feature,
                std::int64_t phrase) const {
    double sum = 0.0;
    for (std::int64_t r = 0; r < d_; ++r) {
      for (std::int64_t v = 0; v < d_; ++v) {
        double inner = 0.0;
        for (std::int64_t z = 0; z < d_; ++z)
          inner += core[(r * d_ + v) * d_ + z] * phrases_[phrase * d_ + z];
        sum += row[r] * features_[feature * d_ + v] * inner;
      }
    }
    return sum;
  }

  const PlantedFactors& settings_;
  std::int64_t d_;
  std::vector<double> users_;
  std::vector<double> items_;
  std::vector<double> features_;  // the last row is the overall rating's
  std::vector<double> phrases_;
  std::vector<double> preference_;
  std::vector<double> of_users_;
  std::vector<double> of_items_;
  Standard overall_;
};

/// Usual is the standard among the reviewed pairs, from a sample of them: users rate and praise against it.
struct Usual {
  Standard overall;
  std::vector<Standard> features;
};

/// One user at a time. Draws without replacement are the largest of log-weights plus Gumbel noise.
class PlantedUser {
 public:
  PlantedUser(const PlantedFactors& settings, const PlantedModel& model)
      : settings_(settings),
        model_(model),
        preferences_(settings.items),
        keys_(settings.items),
        feature_keys_(settings.features),
        meets_(model.dimension()) {}

  /// Which items a user reviews, in the order of writing, which is not that of preference.
  std::vector<std::int32_t> choose(std::int64_t user, std::int64_t count,
                                   std::span<const double> log_popularity) {
    model_.preferences(user, by_item_, preferences_);
    RngStream choice(planted_key(settings_.seed, PlantedDraw::kChoice), static_cast<std::uint32_t>(user));
    for (std::int64_t item = 0; item < settings_.items; ++item)
      keys_[item] = settings_.taste * preferences_[item] + log_popularity[item] + gumbel_draw(choice);
    std::vector<std::int32_t> chosen = largest_places(keys_, count);
    choice.shuffle(std::span<std::int32_t>(chosen));
    return chosen;
  }

  std::vector<WrittenReview> write(std::int64_t user, std::span<const std::int32_t> chosen,
                                   const Usual& usual) {
    model_.contract_user(user, by_item_);
    std::vector<WrittenReview> written;
    for (const std::int32_t item : chosen) written.push_back(review(user, item, usual));
    return written;
  }

 private:
  WrittenReview review(std::int64_t user, std::int32_t item, const Usual& usual) {
    RngStream random(planted_key(settings_.seed, PlantedDraw::kReview), static_cast<std::uint32_t>(user),
                     static_cast<std::uint32_t>(item));
    WrittenReview written{item, 0.0F, {}};
    model_.contract_item(by_item_, item, meets_);
    const double liked = usual.overall.of(model_.meet(meets_, settings_.features));
    const double rated = 3.5 + liked + settings_.noise * random.normal();
    written.rating = static_cast<float>(std::clamp(std::round(rated), 1.0, 5.0));
    for (std::int64_t feature = 0; feature < settings_.features; ++feature) {
      const double attention = std::max(model_.meet(meets_, feature), 1e-9);
      feature_keys_[feature] =
          std::log(attention) - std::log(static_cast<double>(feature + 1)) + gumbel_draw(random);
    }
    std::int64_t count = 1;
    for (double left = settings_.mentions - 1.0 - exponential_draw(random);
         left > 0.0 && count < settings_.features; left -= exponential_draw(random))
      ++count;
    for (const std::int32_t feature : largest_places(feature_keys_, count))
      written.mentions.push_back(mention(user, item, feature, usual, random));
    return written;
  }

  Mention mention(std::int64_t user, std::int32_t item, std::int32_t feature, const Usual& usual,
                  RngStream& random) const {
    const double liked = settings_.praise * usual.features[feature].of(model_.meet(meets_, feature)) + 0.5;
    const bool praised = random.uniform() < sigmoid(liked);
    const std::int64_t praises = (settings_.phrases + 1) / 2;
    const std::int64_t first = feature * settings_.phrases + (praised ? 0 : praises);
    const std::int64_t many = praised ? praises : settings_.phrases - praises;
    std::int64_t chosen = first;
    double best = 0.0;
    for (std::int64_t phrase = first; phrase < first + std::max<std::int64_t>(many, 1); ++phrase) {
      // Squared, so that habits show.
      const double weight = std::max(model_.phrase_weight(user, item, feature, phrase), 1e-12);
      const double key = 2.0 * std::log(weight) + gumbel_draw(random);
      if (phrase > first && key <= best) continue;
      best = key;
      chosen = phrase;
    }
    return {feature, static_cast<std::int32_t>(chosen % settings_.phrases),
            static_cast<std::int8_t>(praised ? 1 : -1)};
  }

  const PlantedFactors& settings_;
  const PlantedModel& model_;
  std::vector<double> by_item_;
  std::vector<double> preferences_;
  std::vector<double> keys_;
  std::vector<double> feature_keys_;
  std::vector<double> meets_;
};

Usual usual_among(const PlantedFactors& settings, const PlantedModel& model,
                  const std::vector<std::vector<std::int32_t>>& chosen) {
  constexpr std::int64_t kSampledUsers = 2000;
  const std::int64_t stride = std::max<std::int64_t>(settings.users / kSampledUsers, 1);
  std::vector<std::vector<double>> values(settings.features + 1);
  std::vector<double> by_item;
  std::vector<double> meets(model.dimension());
  for (std::int64_t user = 0; user < settings.users; user += stride) {
    model.contract_user(user, by_item);
    for (std::size_t i = 0; i < std::min<std::size_t>(chosen[user].size(), 10); ++i) {
      model.contract_item(by_item, chosen[user][i], meets);
      for (std::int64_t feature = 0; feature <= settings.features; ++feature)
        values[feature].push_back(model.meet(meets, feature));
    }
  }
  Usual usual;
  for (const std::vector<double>& of_feature : values) usual.features.push_back(standard_of(of_feature));
  usual.overall = usual.features.back();
  return usual;
}

std::vector<double> log_popularities(const PlantedFactors& settings) {
  std::vector<std::int32_t> order(settings.items);
  std::iota(order.begin(), order.end(), 0);
  RngStream random(planted_key(settings.seed, PlantedDraw::kItem), 0, 1);
  random.shuffle(std::span<std::int32_t>(order));
  std::vector<double> logs(settings.items);
  for (std::int64_t place = 0; place < settings.items; ++place)
    logs[order[place]] = -settings.popularity * std::log(static_cast<double>(place + 1));
  return logs;
}

}  // namespace

const Schema& PlantedFactors::schema() {
  using S = PlantedFactors;
  static const Schema schema =
      SchemaBuilder<S>("factors", "Reviews with planted non-negative factors.")
          .field("users", &S::users, "users", {1, 10'000'000})
          .field("items", &S::items, "items", {2, 1'000'000})
          .field("features", &S::features, "features", {1, 10'000})
          .field("phrases", &S::phrases, "phrases of each feature, half of them praise", {2, 1000})
          .field("reviews", &S::reviews, "reviews of all users together", {1, 1'000'000'000})
          .field("mentions", &S::mentions, "mentioned features of a review, on average", {1, 50})
          .field("dimension", &S::dimension, "length of the planted vectors", {1, 64})
          .field("taste", &S::taste,
                 "logits that a standard deviation of preference adds when users choose what to review",
                 {0, 100})
          .field("popularity", &S::popularity, "exponent of the items' Zipf distribution", {0, 10})
          .field("praise", &S::praise, "logits that a standard deviation of preference adds to praise",
                 {0, 100})
          .field("noise", &S::noise, "standard deviation of a rating's error", {0, 100})
          .field("seed", &S::seed, "seed", {0})
          .build();
  return schema;
}

Reviews make_factor_reviews(ExecutionContext& context, const PlantedFactors& settings) {
  if (settings.reviews > settings.users * settings.items / 2) {
    throw_error<InvalidArgument>("{} reviews are more than half of {} users × {} items: ask for fewer.",
                                 settings.reviews, settings.users, settings.items);
  }
  const PlantedModel model(settings);
  const std::vector<std::int64_t> counts =
      planted_review_counts(settings.users, settings.reviews, 0.3, settings.items,
                            planted_key(settings.seed, PlantedDraw::kCount));
  const std::vector<double> log_popularity = log_popularities(settings);
  std::vector<std::vector<std::int32_t>> chosen(settings.users);
  context.for_blocks(settings.users, kUsersTogether, [&](std::int64_t begin, std::int64_t end, int) {
    PlantedUser planted(settings, model);
    for (std::int64_t user = begin; user < end; ++user)
      chosen[user] = planted.choose(user, counts[user], log_popularity);
  });
  const Usual usual = usual_among(settings, model, chosen);
  std::vector<std::vector<WrittenReview>> written(settings.users);
  context.for_blocks(settings.users, kUsersTogether, [&](std::int64_t begin, std::int64_t end, int) {
    PlantedUser planted(settings, model);
    for (std::int64_t user = begin; user < end; ++user)
      written[user] = planted.write(user, chosen[user], usual);
  });
  return named_reviews(written);
}

}  // namespace olrank
