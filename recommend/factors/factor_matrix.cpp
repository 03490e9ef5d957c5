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
  static const Schema schema =
      SchemaBuilder<FactorSettings>("recommend", "Factorisations.")
          .field("dimension", &FactorSettings::dimension,
                 "length of the latent vectors of nmf, bprmf, mter-s, mter-sa and the trees, and of efm's "
                 "explicit ones")
          .symbol("d")
          .at_least(1)
          .at_most(1024)
          .field("user_dimension", &FactorSettings::user_dimension, "length of a user's vector in mter")
          .symbol("a")
          .at_least(1)
          .at_most(64)
          .field("item_dimension", &FactorSettings::item_dimension, "length of an item's vector in mter")
          .symbol("b")
          .at_least(1)
          .at_most(64)
          .field("feature_dimension", &FactorSettings::feature_dimension,
                 "length of a feature's vector in mter")
          .symbol("c")
          .at_least(1)
          .at_most(64)
          .field("phrase_dimension", &FactorSettings::phrase_dimension,
                 "length of a phrase's vector in mter")
          .symbol("d")
          .at_least(1)
          .at_most(64)
          .field("learning_rate", &FactorSettings::learning_rate, "step of AdaGrad")
          .above(0)
          .at_most(10)
          .field("core_learning_rate", &FactorSettings::core_learning_rate,
                 "step of AdaGrad for mter's cores")
          .at_least(0)
          .at_most(10)
          .field("factor_penalty", &FactorSettings::factor_penalty,
                 "weight of the squared factors, as a mean over their rows")
          .symbol("λ_F")
          .at_least(0)
          .field("core_penalty", &FactorSettings::core_penalty, "weight of the squared cores, as a mean")
          .symbol("λ_G")
          .at_least(0)
          .field("pair_weight", &FactorSettings::pair_weight,
                 "weight of the loss of pairs, as a mean, against the tensors' mean squared errors")
          .symbol("λ_B")
          .at_least(0)
          .field("batch", &FactorSettings::batch, "entries that a step draws from each tensor")
          .at_least(1)
          .at_most(1 << 20)
          .field("pairs", &FactorSettings::pairs, "pairs of items that a step draws")
          .symbol("N_BPR")
          .at_least(1)
          .at_most(1 << 20)
          .field("penalty", &FactorSettings::penalty, "weight of the squared factors of nmf and efm")
          .at_least(0)
          .field("user_feature_weight", &FactorSettings::user_feature_weight,
                 "weight of the features that users mention in efm")
          .symbol("λ_x")
          .at_least(0)
          .field("item_feature_weight", &FactorSettings::item_feature_weight,
                 "weight of the opinions about items in efm")
          .symbol("λ_y")
          .at_least(0)
          .field("hidden_dimension", &FactorSettings::hidden_dimension,
                 "length of efm's latent vectors that explain ratings alone")
          .at_least(0)
          .at_most(1024)
          .field("matched_features", &FactorSettings::matched_features,
                 "number of features by which efm ranks, those that get most of a user's attention")
          .at_least(1)
          .field("feature_share", &FactorSettings::feature_share,
                 "share of the `matched_features` in efm's score; the rest is the predicted rating")
          .at_least(0)
          .at_most(1)
          .build();
  return schema;
}

}  // namespace olrank
