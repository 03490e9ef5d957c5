#include "recommend/trees/matrix_start.h"

#include <cmath>
#include <vector>

#include "core/math/pair_loss.h"
#include "core/random/rng_stream.h"
#include "recommend/trees/preference_pairs.h"

namespace olrank {
namespace {

/// Factors with their sums of squared gradients.
struct LearnedFactors {
  LearnedFactors(std::int64_t rows, int dimension) : values(rows, dimension), squares(rows, dimension) {}

  void step(std::int64_t row, std::span<const double> gradient, double step_size) {
    const std::span<float> value = values.row(row);
    const std::span<float> square = squares.row(row);
    for (std::size_t k = 0; k < value.size(); ++k) {
      square[k] += static_cast<float>(gradient[k] * gradient[k]);
      if (square[k] > 0.0F)
        value[k] -= static_cast<float>(step_size * gradient[k] / std::sqrt(static_cast<double>(square[k])));
    }
  }

  FactorRows values;
  FactorRows squares;
};

/// Factors whose products are about the mean rating.
void draw_start(FactorRows& factors, double scale, std::uint64_t seed, std::uint64_t side) {
  const PhiloxKey key = make_key({.seed = seed, .purpose = Purpose::kInitialisation, .member = side});
  for (std::int64_t row = 0; row < factors.rows(); ++row) {
    RngStream draws(key, 0, static_cast<std::uint32_t>(row));
    for (float& value : factors.row(row)) value = static_cast<float>(scale * (1.0 + 0.3 * draws.normal()));
  }
}

}  // namespace

FactorRows factorise_ratings(const RatingRows& by_user, std::int64_t items,
                             const MatrixStartSettings& settings) {
  const std::int64_t users = by_user.rows();
  LearnedFactors u(users, settings.dimension);
  LearnedFactors v(items, settings.dimension);
  double mean = 0.0;
  for (const float rating : by_user.ratings) mean += rating;
  if (!by_user.ratings.empty()) mean /= static_cast<double>(by_user.ratings.size());
  const double scale = std::sqrt(mean / settings.dimension);
  draw_start(u.values, scale, settings.seed, 1);
  draw_start(v.values, scale, settings.seed, 2);
  std::vector<double> of_user(settings.dimension);
  std::vector<double> of_winner(settings.dimension);
  std::vector<double> of_loser(settings.dimension);
  for (std::int64_t pass = 0; pass < settings.passes; ++pass) {
    // The passes of trees are numbered from 1, these below 0.
    const std::vector<PreferencePair> pairs =
        sample_preference_pairs(by_user, items, 1, settings.seed, -1 - pass);
    for (const PreferencePair& pair : pairs) {
      const std::span<const float> user = u.values.row(pair.user);
      const std::span<const float> winner = v.values.row(pair.winner);
      const std::span<const float> loser = v.values.row(pair.loser);
      const double predicted = factor_product(user, winner);
      const auto rated = by_user.others_of(pair.user);
      const auto place = std::lower_bound(rated.begin(), rated.end(), pair.winner) - rated.begin();
      const double error = 2.0 * (predicted - by_user.ratings_of(pair.user)[place]);
      const double z = predicted - factor_product(user, loser);
      const double pull = -settings.pair_weight * sigmoid(-z);
      for (int k = 0; k < settings.dimension; ++k) {
        of_user[k] = error * winner[k] + pull * (static_cast<double>(winner[k]) - loser[k]) +
                     2.0 * settings.penalty * user[k];
        of_winner[k] = (error + pull) * user[k] + 2.0 * settings.penalty * winner[k];
        of_loser[k] = -pull * user[k];
      }
      u.step(pair.user, of_user, settings.step_size);
      v.step(pair.winner, of_winner, settings.step_size);
      v.step(pair.loser, of_loser, settings.step_size);
    }
  }
  return v.values;
}

}  // namespace olrank
