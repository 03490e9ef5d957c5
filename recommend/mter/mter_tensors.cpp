#include "recommend/mter/mter_tensors.h"

#include <algorithm>
#include <tuple>

#include "core/math/pair_loss.h"

namespace olrank {
namespace {

/// A mention by its place in a tensor.
struct PlacedMention {
  std::int32_t feature;
  std::int32_t row;
  std::int32_t column;
  std::int32_t count;  // a sentiment, or one use

  auto place() const { return std::tie(feature, row, column); }
};

/// Adds up mentions at the same place; value(sum) is the entry.
template <class Value>
SparseTensor tensor_of(std::vector<PlacedMention>& mentions, Value value) {
  std::sort(mentions.begin(), mentions.end(),
            [](const PlacedMention& a, const PlacedMention& b) { return a.place() < b.place(); });
  SparseTensor tensor;
  for (std::size_t begin = 0; begin < mentions.size();) {
    std::size_t end = begin;
    std::int64_t sum = 0;
    while (end < mentions.size() && mentions[end].place() == mentions[begin].place())
      sum += mentions[end++].count;
    tensor.row.push_back(mentions[begin].row);
    tensor.column.push_back(mentions[begin].column);
    tensor.feature.push_back(mentions[begin].feature);
    tensor.value.push_back(static_cast<float>(value(static_cast<double>(sum))));
    begin = end;
  }
  return tensor;
}

void add_ratings(SparseTensor& tensor, const RatingRows& by_user, std::int32_t feature) {
  for (std::int64_t user = 0; user < by_user.rows(); ++user) {
    const auto items = by_user.others_of(user);
    const auto ratings = by_user.ratings_of(user);
    for (std::size_t i = 0; i < items.size(); ++i) {
      tensor.row.push_back(static_cast<std::int32_t>(user));
      tensor.column.push_back(items[i]);
      tensor.feature.push_back(feature);
      tensor.value.push_back(ratings[i]);
    }
  }
}

}  // namespace

double preference_value(double sentiments, double highest_rating) {
  return 1.0 + (highest_rating - 1.0) * sigmoid(sentiments);
}

double phrase_value(double uses, double highest_rating) {
  return 1.0 + (highest_rating - 1.0) * (2.0 * sigmoid(uses) - 1.0);
}

MterTensors make_mter_tensors(const TrainingData& data) {
  const Reviews& reviews = *data.reviews;
  const double highest = reviews.highest_rating;
  std::vector<PlacedMention> placed;
  const auto gather = [&](auto place) {
    placed.clear();
    for (const std::int64_t review : data.train) {
      for (const Mention& mention : reviews.mentions_of(review)) place(review, mention);
    }
  };
  MterTensors tensors;
  gather([&](std::int64_t review, const Mention& mention) {
    placed.push_back({mention.feature, reviews.user[review], reviews.item[review], mention.sentiment});
  });
  tensors.preferences = tensor_of(placed, [&](double sum) { return preference_value(sum, highest); });
  add_ratings(tensors.preferences, data.by_user, static_cast<std::int32_t>(reviews.names.features.size()));
  gather([&](std::int64_t review, const Mention& mention) {
    if (mention.sentiment > 0) placed.push_back({mention.feature, reviews.user[review], mention.phrase, 1});
  });
  tensors.user_phrases = tensor_of(placed, [&](double uses) { return phrase_value(uses, highest); });
  gather([&](std::int64_t review, const Mention& mention) {
    if (mention.sentiment > 0) placed.push_back({mention.feature, reviews.item[review], mention.phrase, 1});
  });
  tensors.item_phrases = tensor_of(placed, [&](double uses) { return phrase_value(uses, highest); });
  return tensors;
}

}  // namespace olrank
