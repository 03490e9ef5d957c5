#include "recommend/factors/factor_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/math/pair_loss.h"

namespace olrank {
namespace {

constexpr float kTinySquare = 1e-12F;
constexpr int kSweeps = 10;  // of coordinate descent

OLRANK_ALWAYS_INLINE void adagrad_elements(float rate, float lowest, const float* gradient, float* squares,
                                           float* theta, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float square = squares[i] + gradient[i] * gradient[i];
    squares[i] = square;
    const float moved = theta[i] - rate * gradient[i] / std::sqrt(square + kTinySquare);
    theta[i] = moved < lowest ? lowest : moved;
  }
}

OLRANK_VECTOR_CLONES
void score_loop(const float* direction, const float* rows, std::int64_t width, float* scores,
                std::int64_t count) {
  for (std::int64_t row = 0; row < count; ++row)
    scores[row] = product_of_rows(direction, rows + row * width, width);
}

OLRANK_VECTOR_CLONES
void adagrad_loop(float rate, float lowest, const float* gradient, float* squares, float* theta,
                  std::int64_t count) {
  adagrad_elements(rate, lowest, gradient, squares, theta, count);
}

}  // namespace

FactorMatrix::FactorMatrix(std::int64_t row_count, std::int64_t column_count)
    : rows(row_count),
      columns(column_count),
      width(padded_width(column_count)),
      values(static_cast<std::size_t>(rows * width), 0.0F) {}

template <class Draw>
void FactorMatrix::fill(std::uint64_t seed, std::uint64_t part, const Draw& draw) {
  const PhiloxKey key = make_key({.seed = seed, .purpose = Purpose::kInitialisation, .member = part});
  squares.assign(values.size(), 0.0F);
  for (std::int64_t number = 0; number < rows; ++number) {
    RngStream random(key, static_cast<std::uint32_t>(number));
    for (std::int64_t column = 0; column < columns; ++column)
      row(number)[column] = static_cast<float>(draw(random));
  }
}

void FactorMatrix::fill_uniform(std::uint64_t seed, std::uint64_t part, double scale) {
  fill(seed, part, [scale](RngStream& random) { return scale * random.uniform(); });
}

void FactorMatrix::fill_normal(std::uint64_t seed, std::uint64_t part, double deviation) {
  fill(seed, part, [deviation](RngStream& random) { return deviation * random.normal(); });
}

void FactorMatrix::start_gradient(std::int64_t number, double penalty, float* gradient) const {
  const auto slope = static_cast<float>(2.0 * penalty / static_cast<double>(rows));
  for (std::int64_t i = 0; i < width; ++i) gradient[i] = slope * row(number)[i];
}

void FactorMatrix::fields(StateFields& state, std::string_view name, bool with_squares) {
  state.sized(name, values);
  if (!with_squares) return;
  squares.resize(values.size());
  state.sized(fmt::format("{}.squares", name), squares);
}

float row_product(const float* a, const float* b, std::int64_t width) {
  return product_of_rows(a, b, width);
}

void score_rows(const float* direction, const FactorMatrix& matrix, std::span<float> scores) {
  score_loop(direction, matrix.values.data(), matrix.width, scores.data(), std::ssize(scores));
}

void adagrad_step(float rate, bool non_negative, const float* gradient, float* squares, float* theta,
                  std::int64_t count) {
  constexpr float kNoBound = -3e38F;
  adagrad_loop(rate, non_negative ? 0.0F : kNoBound, gradient, squares, theta, count);
}

const Schema& FactorSettings::schema() {
  using S = FactorSettings;
  static const Schema schema =
      SchemaBuilder<S>("recommend", "Factorisations.")
          .field("dimension", &S::dimension,
                 "length of the latent vectors of nmf, bprmf, mter-s, mter-sa and the trees, and of efm's "
                 "explicit ones",
                 {1, 1024})
          .symbol("d")
          .field("user_dimension", &S::user_dimension, "length of a user's vector in mter", {1, 64})
          .symbol("a")
          .field("item_dimension", &S::item_dimension, "length of an item's vector in mter", {1, 64})
          .symbol("b")
          .field("feature_dimension", &S::feature_dimension, "length of a feature's vector in mter",
                 {1, 64})
          .symbol("c")
          .field("phrase_dimension", &S::phrase_dimension, "length of a phrase's vector in mter", {1, 64})
          .symbol("d")
          .field("learning_rate", &S::learning_rate, "step of AdaGrad", above(0, 10))
          .field("core_learning_rate", &S::core_learning_rate, "step of AdaGrad for mter's cores", {0, 10})
          .field("factor_penalty", &S::factor_penalty,
                 "weight of the squared factors, as a mean over their rows", {0})
          .symbol("λ_F")
          .field("core_penalty", &S::core_penalty, "weight of the squared cores, as a mean", {0})
          .symbol("λ_G")
          .field("pair_weight", &S::pair_weight,
                 "weight of the loss of pairs, as a mean, against the tensors' mean squared errors", {0})
          .symbol("λ_B")
          .field("batch", &S::batch, "entries that a step draws from each tensor", {1, 1 << 20})
          .field("pairs", &S::pairs, "pairs of items that a step draws", {1, 1 << 20})
          .symbol("N_BPR")
          .field("penalty", &S::penalty, "weight of the squared factors of nmf and efm", {0})
          .field("user_feature_weight", &S::user_feature_weight,
                 "weight of the features that users mention in efm", {0})
          .symbol("λ_x")
          .field("item_feature_weight", &S::item_feature_weight,
                 "weight of the opinions about items in efm", {0})
          .symbol("λ_y")
          .field("hidden_dimension", &S::hidden_dimension,
                 "length of efm's latent vectors that explain ratings alone", {0, 1024})
          .field("matched_features", &S::matched_features,
                 "number of features by which efm ranks, those that get most of a user's attention", {1})
          .field("feature_share", &S::feature_share,
                 "share of the `matched_features` in efm's score; the rest is the predicted rating", {0, 1})
          .build();
  return schema;
}

namespace {

constexpr int kMostTries = 16;

constexpr std::size_t kTermsOfProduct = 64;

/// Slopes, and per pair 1 + e^{−|z|}, whose logarithm is what −ln σ(z) exceeds max(−z, 0) by.
OLRANK_VECTOR_CLONES
void slope_loop(const float* differences, double weight, float* slopes, double* tails, std::size_t count) {
  for (std::size_t s = 0; s < count; ++s) {
    const double z = differences[s];
    const double e = portable_exp_nonpositive(-std::fabs(z));
    const double against = (z < 0.0 ? 1.0 : e) / (1.0 + e);  // σ(−z)
    slopes[s] = static_cast<float>(-weight * against);
    tails[s] = 1.0 + e;
  }
}

}  // namespace

PairDraws::PairDraws(const RatingRows& by_user, std::int64_t items) : by_user_(by_user), items_(items) {
  users_.reserve(by_user.others.size());
  for (std::int64_t user = 0; user < by_user.rows(); ++user)
    users_.insert(users_.end(), by_user.count(user), static_cast<std::int32_t>(user));
}

void PairDraws::draw(PhiloxKey key, std::uint32_t iteration, std::int64_t begin, std::int64_t count,
                     std::span<ItemPair> pairs) const {
  assert(begin % kBlock == 0 && std::ssize(pairs) <= kBlock);
  RngStream random(key, iteration, static_cast<std::uint32_t>(begin / kBlock));
  const auto items = static_cast<std::uint32_t>(items_);
  for (std::int64_t s = 0; s < std::ssize(pairs); ++s) {
    const double part =
        static_cast<double>(begin + s) + static_cast<double>(random.next_bits()) * 0x1.0p-32;
    const auto place = std::min(
        static_cast<std::int64_t>(part * static_cast<double>(reviews()) / static_cast<double>(count)),
        reviews() - 1);
    ItemPair& pair = pairs[s];
    pair.user = users_[place];
    pair.winner = pair.loser = by_user_.others[place];
    const auto own = by_user_.others_of(pair.user);
    const float rating = by_user_.ratings[place];
    for (int tried = 0; tried < kMostTries; ++tried) {
      const auto other = static_cast<std::int32_t>(random.index(items));
      const auto found = std::lower_bound(own.begin(), own.end(), other);
      if (found != own.end() && *found == other &&
          !(by_user_.ratings_of(pair.user)[found - own.begin()] < rating))
        continue;
      pair.loser = other;
      break;
    }
  }
}

void RowIndex::build(std::span<const std::int32_t> row_of_sample, std::int64_t rows) {
  ends_.assign(rows + 2, 0);
  std::size_t used = 0;
  for (const std::int32_t row : row_of_sample) {
    if (row < 0) continue;
    ++ends_[row + 2];
    ++used;
  }
  for (std::int64_t row = 2; row < rows + 2; ++row) ends_[row] += ends_[row - 1];
  samples_.resize(used);
  // Entry row + 1 is where the row's next sample goes; in the end it is where the row ends.
  for (std::size_t sample = 0; sample < row_of_sample.size(); ++sample) {
    if (row_of_sample[sample] >= 0)
      samples_[ends_[row_of_sample[sample] + 1]++] = static_cast<std::int32_t>(sample);
  }
}

double pair_slopes(std::span<const float> differences, double weight, std::span<float> slopes) {
  double tails[kTermsOfProduct];
  double loss = 0.0;
  for (std::size_t begin = 0; begin < differences.size(); begin += kTermsOfProduct) {
    const std::size_t count = std::min(kTermsOfProduct, differences.size() - begin);
    slope_loop(&differences[begin], weight, &slopes[begin], tails, count);
    double product = 1.0;  // at most 2^64: one logarithm instead of 64
    for (std::size_t s = 0; s < count; ++s) {
      product *= tails[s];
      loss += std::max(-static_cast<double>(differences[begin + s]), 0.0);
    }
    loss += std::log(product);
  }
  return loss;
}

void NonnegativeRow::clear() {
  std::fill(gram_.begin(), gram_.end(), 0.0);
  std::fill(right_.begin(), right_.end(), 0.0);
}

void NonnegativeRow::add(std::span<const float> f, double target, double weight) {
  const std::size_t size = right_.size();
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double scaled = weight * double{f[i]};
    right_[i] += scaled * target;
    for (std::size_t j = i; j < f.size(); ++j) gram_[i * size + j] += scaled * double{f[j]};
  }
}

void NonnegativeRow::solve(double penalty, std::span<float> x) const {
  const std::size_t size = right_.size();
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < size; ++i) {
      const double curvature = gram_[i * size + i] + penalty;
      if (curvature <= 0.0) continue;
      double slope = right_[i] - penalty * double{x[i]};
      for (std::size_t j = 0; j < i; ++j) slope -= gram_[j * size + i] * double{x[j]};
      for (std::size_t j = i; j < size; ++j) slope -= gram_[i * size + j] * double{x[j]};
      x[i] = static_cast<float>(std::max(double{x[i]} + slope / curvature, 0.0));
    }
  }
}

void fit_rows(ExecutionContext& context, FactorMatrix& fitted, double penalty,
              const std::vector<ObservedRows>& observed) {
  constexpr std::int64_t kRowsOfBlock = 32;
  context.for_blocks(fitted.rows, kRowsOfBlock, [&](std::int64_t begin, std::int64_t end, int) {
    NonnegativeRow row(fitted.columns);
    for (std::int64_t number = begin; number < end; ++number) {
      row.clear();
      for (const ObservedRows& part : observed) {
        for (std::int64_t i = 0; i < part.rows->count(number) && part.weight > 0.0; ++i) {
          row.add(
              {part.given->row(part.rows->others_of(number)[i]), static_cast<std::size_t>(part.columns)},
              part.rows->ratings_of(number)[i], part.weight);
        }
      }
      row.solve(penalty, {fitted.row(number), static_cast<std::size_t>(fitted.columns)});
    }
  });
}

}  // namespace olrank
