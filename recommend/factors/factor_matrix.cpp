#include "recommend/factors/factor_matrix.h"

#include <fmt/format.h>

#include <cmath>

#include "core/io/state_archive.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

constexpr float kTinySquare = 1e-12F;

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

void FactorMatrix::fill_uniform(PhiloxKey key, double scale) {
  squares.assign(values.size(), 0.0F);
  for (std::int64_t number = 0; number < rows; ++number) {
    RngStream random(key, static_cast<std::uint32_t>(number));
    for (std::int64_t column = 0; column < columns; ++column)
      row(number)[column] = static_cast<float>(scale * random.uniform());
  }
}

void FactorMatrix::fill_normal(PhiloxKey key, double deviation) {
  squares.assign(values.size(), 0.0F);
  for (std::int64_t number = 0; number < rows; ++number) {
    RngStream random(key, static_cast<std::uint32_t>(number));
    for (std::int64_t column = 0; column < columns; ++column)
      row(number)[column] = static_cast<float>(deviation * random.normal());
  }
}

void FactorMatrix::save(StateWriter& state, std::string_view name, bool with_squares) const {
  state.put(name, std::span<const float>(values));
  if (with_squares) state.put(fmt::format("{}.squares", name), std::span<const float>(squares));
}

void FactorMatrix::load(StateReader& state, std::string_view name, bool with_squares) {
  state.get_into(name, std::span<float>(values));
  if (!with_squares) return;
  squares.resize(values.size());
  state.get_into(fmt::format("{}.squares", name), std::span<float>(squares));
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
                 "explicit ones")
          .symbol("d")
          .between(1, 1024)
          .field("user_dimension", &S::user_dimension, "length of a user's vector in mter")
          .symbol("a")
          .between(1, 64)
          .field("item_dimension", &S::item_dimension, "length of an item's vector in mter")
          .symbol("b")
          .between(1, 64)
          .field("feature_dimension", &S::feature_dimension, "length of a feature's vector in mter")
          .symbol("c")
          .between(1, 64)
          .field("phrase_dimension", &S::phrase_dimension, "length of a phrase's vector in mter")
          .symbol("d")
          .between(1, 64)
          .field("learning_rate", &S::learning_rate, "step of AdaGrad")
          .above(0)
          .at_most(10)
          .field("core_learning_rate", &S::core_learning_rate, "step of AdaGrad for mter's cores")
          .between(0, 10)
          .field("factor_penalty", &S::factor_penalty,
                 "weight of the squared factors, as a mean over their rows")
          .symbol("λ_F")
          .at_least(0)
          .field("core_penalty", &S::core_penalty, "weight of the squared cores, as a mean")
          .symbol("λ_G")
          .at_least(0)
          .field("pair_weight", &S::pair_weight,
                 "weight of the loss of pairs, as a mean, against the tensors' mean squared errors")
          .symbol("λ_B")
          .at_least(0)
          .field("batch", &S::batch, "entries that a step draws from each tensor")
          .between(1, 1 << 20)
          .field("pairs", &S::pairs, "pairs of items that a step draws")
          .symbol("N_BPR")
          .between(1, 1 << 20)
          .field("penalty", &S::penalty, "weight of the squared factors of nmf and efm")
          .at_least(0)
          .field("user_feature_weight", &S::user_feature_weight,
                 "weight of the features that users mention in efm")
          .symbol("λ_x")
          .at_least(0)
          .field("item_feature_weight", &S::item_feature_weight,
                 "weight of the opinions about items in efm")
          .symbol("λ_y")
          .at_least(0)
          .field("hidden_dimension", &S::hidden_dimension,
                 "length of efm's latent vectors that explain ratings alone")
          .between(0, 1024)
          .field("matched_features", &S::matched_features,
                 "number of features by which efm ranks, those that get most of a user's attention")
          .at_least(1)
          .field("feature_share", &S::feature_share,
                 "share of the `matched_features` in efm's score; the rest is the predicted rating")
          .between(0, 1)
          .build();
  return schema;
}

}  // namespace olrank
