#include "recommend/mter/mter_parameters.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/io/state_archive.h"
#include "core/math/pair_loss.h"

namespace olrank {
namespace {

constexpr std::array<MterSide, kMterSides> kSides = {MterSide::kUser, MterSide::kItem, MterSide::kPhrase,
                                                     MterSide::kFeature};

std::int64_t columns_of(MterForm form, const FactorSettings& settings, MterSide side) {
  if (form != MterForm::kTucker) return settings.dimension;
  const std::array<std::int64_t, kMterSides> columns = {settings.user_dimension, settings.item_dimension,
                                                        settings.phrase_dimension,
                                                        settings.feature_dimension};
  return columns[static_cast<std::size_t>(side)];
}

/// Features have a row more, the overall rating's.
std::int64_t rows_of(const ReviewCounts& counts, MterSide side) {
  const std::array<std::int64_t, kMterSides> rows = {counts.users, counts.items, counts.phrases,
                                                     counts.features + 1};
  return rows[static_cast<std::size_t>(side)];
}

FactorMatrix matrix(std::int64_t rows, std::int64_t columns, std::int64_t width) {
  FactorMatrix made(rows, width);
  made.columns = columns;
  return made;
}

/// Uniform noise of a core's start around a diagonal of ones.
constexpr double kCoreNoise = 0.002;

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

std::int64_t MterParameters::common_width(MterForm form, const FactorSettings& settings) {
  std::int64_t width = 0;
  for (const MterSide side : kSides)
    width = std::max(width, padded_width(columns_of(form, settings, side)));
  return width;
}

MterParameters::MterParameters(MterForm the_form, const FactorSettings& settings,
                               const ReviewCounts& counts)
    : form(the_form) {
  const std::int64_t width = common_width(form, settings);
  for (const MterSide side : kSides) {
    const auto place = static_cast<std::size_t>(side);
    shared[place] = matrix(rows_of(counts, side), columns_of(form, settings, side), width);
    if (form != MterForm::kSplit) continue;
    for (std::size_t task = 0; task < kMterTasks; ++task) {
      if (!task_has(task, side)) continue;
      own[task][place] = shared[place];
      sums[task][place] = shared[place];
    }
  }
  if (form != MterForm::kTucker) return;
  for (FactorMatrix& core : cores) core = matrix(columns(MterSide::kFeature), width * width, width * width);
}

void MterParameters::add_up(std::size_t task, MterSide side, std::int64_t row) {
  const auto place = static_cast<std::size_t>(side);
  const float* const common = shared[place].row(row);
  const float* const extra = own[task][place].row(row);
  float* const sum = sums[task][place].row(row);
  for (std::int64_t i = 0; i < width(); ++i) sum[i] = common[i] + extra[i];
}

void MterParameters::add_up_all() {
  if (form != MterForm::kSplit) return;
  for (std::size_t task = 0; task < kMterTasks; ++task) {
    for (const MterSide side : kSides) {
      if (!task_has(task, side)) continue;
      for (std::int64_t row = 0; row < rows(side); ++row) add_up(task, side, row);
    }
  }
}

void MterParameters::start(std::uint64_t seed, double highest_rating) {
  const double middle = (1.0 + highest_rating) / 2.0;
  // E[(scale · uniform)³] · terms = middle, where a prediction sums `terms` products.
  double terms = static_cast<double>(columns(MterSide::kUser));
  if (form == MterForm::kTucker) {
    const auto a = static_cast<double>(columns(MterSide::kUser));
    const auto b = static_cast<double>(columns(MterSide::kItem));
    const auto c = static_cast<double>(columns(MterSide::kFeature));
    terms = std::max({a, b, c}) + kCoreNoise / 2.0 * a * b * c;
  }
  double scale = 2.0 * std::pow(middle / terms, 1.0 / 3.0);
  if (form == MterForm::kSplit) scale /= 2.0;  // two of them are added
  std::uint64_t part = 0;
  for (FactorMatrix& side : shared) side.fill_uniform(seed, part++, scale);
  for (auto& of_task : own) {
    for (FactorMatrix& side : of_task) side.fill_uniform(seed, part++, scale);
  }
  for (std::size_t task = 0; task < kMterTasks && form == MterForm::kTucker; ++task)
    start_core(task, seed, part++);
  add_up_all();
}

void MterParameters::start_core(std::size_t task, std::uint64_t seed, std::uint64_t part) {
  FactorMatrix& core = cores[task];
  core.fill_uniform(seed, part, kCoreNoise);
  const std::int64_t lanes = width();
  const std::int64_t rows_used = columns(kRowSide[task]);
  const std::int64_t columns_used = columns(kColumnSide[task]);
  for (std::int64_t v = 0; v < core.rows; ++v) {
    for (std::int64_t r = 0; r < lanes; ++r) {
      for (std::int64_t t = 0; t < lanes; ++t) {
        // Padded places stay 0.
        if (r >= rows_used || t >= columns_used) core.row(v)[r * lanes + t] = 0.0F;
      }
    }
  }
  const std::int64_t longest = std::max({core.rows, rows_used, columns_used});
  for (std::int64_t i = 0; i < longest; ++i)
    core.row(i % core.rows)[i % rows_used * lanes + i % columns_used] += 1.0F;
}

void MterParameters::fields(StateFields& state, bool with_squares) {
  for (FactorMatrix& side : shared) side.fields(state, "mter.shared", with_squares);
  if (form == MterForm::kSplit) {
    for (auto& of_task : own) {
      for (FactorMatrix& side : of_task) side.fields(state, "mter.own", with_squares);
    }
  }
  if (form == MterForm::kTucker) {
    for (FactorMatrix& core : cores) core.fields(state, "mter.core", with_squares);
  }
  if (state.reads()) add_up_all();
}

std::int64_t MterParameters::bytes(MterForm form, const FactorSettings& settings,
                                   const ReviewCounts& counts, bool with_squares) {
  const std::int64_t width = common_width(form, settings);
  const std::int64_t copies = with_squares ? 2 : 1;
  std::int64_t floats = 0;
  for (const MterSide side : kSides) {
    std::int64_t matrices = copies;
    for (std::size_t task = 0; task < kMterTasks && form == MterForm::kSplit; ++task)
      matrices += task_has(task, side) ? copies + 1 : 0;
    floats += matrices * rows_of(counts, side) * width;
  }
  if (form == MterForm::kTucker) floats += copies * 3 * settings.feature_dimension * width * width;
  return floats * static_cast<std::int64_t>(sizeof(float));
}

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
  const auto phrases_of = [&](const std::vector<std::int32_t>& row_of) {
    gather([&](std::int64_t review, const Mention& mention) {
      if (mention.sentiment > 0) placed.push_back({mention.feature, row_of[review], mention.phrase, 1});
    });
    return tensor_of(placed, [&](double uses) { return phrase_value(uses, highest); });
  };
  tensors.user_phrases = phrases_of(reviews.user);
  tensors.item_phrases = phrases_of(reviews.item);
  return tensors;
}

}  // namespace olrank
