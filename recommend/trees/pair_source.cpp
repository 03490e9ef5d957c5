#include "recommend/trees/pair_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/math/host_device.h"
#include "core/math/pair_loss.h"
#include "core/math/portable_exp.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// `rows_of` gives the rows that a pair concerns.
template <class RowsOf>
PairIndex index_pairs(std::span<const ItemPair> pairs, std::int64_t rows, RowsOf rows_of) {
  return grouped<std::int64_t>(rows, [&](const auto& add) {
    for (std::int64_t number = 0; number < std::ssize(pairs); ++number) {
      for (const std::int32_t row : rows_of(pairs[number])) add(row, number);
    }
  });
}

constexpr std::int64_t kTermsOfBlock = 256;  // summed in float

using Parts = std::array<std::vector<double>, kTreeBranches>;

/// Factors and gradients of the parts in float, padded.
struct PaddedParts {
  explicit PaddedParts(int padded) : stride(padded), values(std::size_t(kTreeBranches) * padded, 0.0F) {}
  float* part(int number) { return values.data() + std::size_t(number) * stride; }
  const float* part(int number) const { return values.data() + std::size_t(number) * stride; }

  int stride;
  std::vector<float> values;
};

OLRANK_ALWAYS_INLINE void add_padded(float scale, const float* vector, float* sum, int stride) {
  for (int k = 0; k < stride; ++k) sum[k] += scale * vector[k];
}

/// The loss of a block of terms, and minus its gradient if `gradient` is wanted. A block has few enough
/// terms that the product of their 1 + e^{−|z|} ≤ 2 does not overflow, so that it needs one logarithm.
OLRANK_VECTOR_CLONES double block_loss(const PairTerm* terms, const float* vectors, std::int64_t count,
                                       int stride, const std::uint8_t* part_of, const float* factors,
                                       float* gradient) {
  double linear = 0.0;
  double product = 1.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const w = vectors + i * stride;
    const int plus = terms[i].plus < 0 ? -1 : part_of[terms[i].plus];
    const int minus = terms[i].minus < 0 ? -1 : part_of[terms[i].minus];
    if (plus == minus) {  // z = 0 whatever the factors
      product *= 2.0;
      continue;
    }
    float z = terms[i].offset;
    if (plus >= 0) z += padded_product(w, factors + plus * stride, stride);
    if (minus >= 0) z -= padded_product(w, factors + minus * stride, stride);
    const double e = portable_exp_nonpositive(-std::fabs(static_cast<double>(z)));
    product *= 1.0 + e;
    if (z < 0.0F) linear -= z;
    if (gradient == nullptr) continue;
    const auto pull = static_cast<float>((z < 0.0F ? 1.0 : e) / (1.0 + e));  // σ(−z)
    if (plus >= 0) add_padded(pull, w, gradient + plus * stride, stride);
    if (minus >= 0) add_padded(-pull, w, gradient + minus * stride, stride);
  }
  return linear + std::log(product);
}

double all_pairs_loss(const NodePairs& pairs, std::span<const std::uint8_t> part_of, const Parts& factors,
                      Parts* gradient) {
  const int stride = pairs.vectors.stride();
  PaddedParts padded(stride);
  for (int part = 0; part < kTreeBranches; ++part)
    std::transform(factors[part].begin(), factors[part].end(), padded.part(part),
                   [](double value) { return static_cast<float>(value); });
  PaddedParts pulls(stride);
  double loss = 0.0;
  const std::int64_t count = std::ssize(pairs.terms);
  for (std::int64_t begin = 0; begin < count; begin += kTermsOfBlock) {
    if (gradient != nullptr) std::fill(pulls.values.begin(), pulls.values.end(), 0.0F);
    loss += block_loss(pairs.terms.data() + begin, pairs.vectors.row(begin).data(),
                       std::min(kTermsOfBlock, count - begin), stride, part_of.data(), padded.values.data(),
                       gradient == nullptr ? nullptr : pulls.values.data());
    if (gradient == nullptr) continue;
    for (int part = 0; part < kTreeBranches; ++part) {
      for (std::size_t k = 0; k < (*gradient)[part].size(); ++k)
        (*gradient)[part][k] -= pulls.part(part)[k];
    }
  }
  return loss;
}

constexpr int kMostDraws = 8;

/// Whether (winner, l) is in D_i.
bool is_preferred(std::span<const std::int32_t> items, std::span<const float> ratings, float rating,
                  std::int32_t other) {
  const auto place = std::ranges::lower_bound(items, other);
  if (place == items.end() || *place != other) return true;
  return rating > ratings[place - items.begin()];
}

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

UserPairs::UserPairs(std::span<const ItemPair> pairs, std::int64_t users, const FactorRows& items)
    : PairSource(pairs, items,
                 index_pairs(pairs, users, [](const ItemPair& pair) { return std::array{pair.user}; })) {}

NodePairs UserPairs::gather(std::span<const std::int32_t> rows, const FactorRows&) const {
  std::int64_t count = 0;
  for (const std::int32_t row : rows) count += std::ssize(index_.of(row));
  NodePairs gathered;
  gathered.terms.reserve(count);
  gathered.vectors = FactorRows(count, others_.dimension());
  for (std::size_t place = 0; place < rows.size(); ++place) {
    for (const std::int64_t number : index_.of(rows[place])) {
      const std::span<const float> winner = others_.row(pairs_[number].winner);
      const std::span<const float> loser = others_.row(pairs_[number].loser);
      const std::span<float> w = gathered.vectors.row(std::ssize(gathered.terms));
      for (std::size_t k = 0; k < w.size(); ++k) w[k] = winner[k] - loser[k];
      gathered.terms.push_back({.plus = static_cast<std::int32_t>(place)});
    }
  }
  return gathered;
}

ItemPairs::ItemPairs(std::span<const ItemPair> pairs, std::int64_t items, const FactorRows& users)
    : PairSource(pairs, users, index_pairs(pairs, items, [](const ItemPair& pair) {
                   return std::array{pair.winner, pair.loser};
                 })) {}

NodePairs ItemPairs::gather(std::span<const std::int32_t> rows, const FactorRows& current) const {
  // Rows ascend.
  const auto place_of = [&](std::int32_t item) {
    const auto found = std::ranges::lower_bound(rows, item);
    const bool here = found != rows.end() && *found == item;
    return here ? static_cast<std::int32_t>(found - rows.begin()) : -1;
  };
  NodePairs gathered;
  std::vector<std::int32_t> users;
  for (std::size_t place = 0; place < rows.size(); ++place) {
    for (const std::int64_t number : index_.of(rows[place])) {
      const ItemPair& pair = pairs_[number];
      const bool wins = pair.winner == rows[place];
      const std::int32_t other = wins ? pair.loser : pair.winner;
      const std::int32_t place_of_other = place_of(other);
      if (place_of_other >= 0 && !wins) continue;  // comes with its winner
      PairTerm term;
      (wins ? term.plus : term.minus) = static_cast<std::int32_t>(place);
      if (place_of_other >= 0) {
        term.minus = place_of_other;
      } else {
        const double fixed = factor_product(others_.row(pair.user), current.row(other));
        term.offset = static_cast<float>(wins ? -fixed : fixed);
      }
      gathered.terms.push_back(term);
      users.push_back(pair.user);
    }
  }
  gathered.vectors = FactorRows(std::ssize(users), others_.dimension());
  for (std::size_t number = 0; number < users.size(); ++number)
    std::ranges::copy(others_.row(users[number]),
                      gathered.vectors.row(static_cast<std::int64_t>(number)).begin());
  return gathered;
}

double pair_loss_of_parts(const NodePairs& pairs, std::span<const std::uint8_t> part_of,
                          const Parts& factors) {
  return all_pairs_loss(pairs, part_of, factors, nullptr);
}

PartFit fit_parts(const Parts& sums, const std::array<std::int64_t, kTreeBranches>& rows,
                  std::span<const double> anchor, std::span<const double> without_rows, double lambda,
                  const NodePairs& pairs, std::span<const std::uint8_t> part_of,
                  const DescentSettings& settings) {
  const std::size_t dimension = anchor.size();
  RidgeSolver solver(static_cast<int>(dimension));
  Parts factors;
  for (int part = 0; part < kTreeBranches; ++part) {
    factors[part].assign(without_rows.begin(), without_rows.end());
    if (rows[part] > 0) solver.minimise(sums[part], lambda, anchor, factors[part]);
  }
  PartFit best{.factors = factors, .objective = std::numeric_limits<double>::infinity()};
  const bool descend = settings.pair_weight > 0.0 && !pairs.terms.empty();
  Parts squares;
  squares.fill(std::vector<double>(dimension, 0.0));
  const int steps = descend ? settings.steps : 0;
  for (int step = 0; step <= steps; ++step) {
    double objective = 0.0;
    Parts gradient;
    gradient.fill(std::vector<double>(dimension, 0.0));
    if (descend) {
      objective += settings.pair_weight *
                   all_pairs_loss(pairs, part_of, factors, step < steps ? &gradient : nullptr);
    }
    for (int part = 0; part < kTreeBranches; ++part) {
      if (rows[part] == 0) continue;
      objective += squared_error(sums[part], factors[part]);
      for (double& slope : gradient[part]) slope *= settings.pair_weight;
      add_squared_error_gradient(sums[part], factors[part], gradient[part]);
      for (std::size_t k = 0; k < dimension; ++k) {
        const double distance = factors[part][k] - anchor[k];
        objective += lambda * distance * distance;
        gradient[part][k] += 2.0 * lambda * distance;
      }
    }
    if (objective < best.objective) best = {factors, objective};
    if (step == steps) break;
    for (int part = 0; part < kTreeBranches; ++part) {
      if (rows[part] == 0) continue;
      for (std::size_t k = 0; k < dimension; ++k) {
        squares[part][k] += gradient[part][k] * gradient[part][k];
        if (squares[part][k] > 0.0)
          factors[part][k] -= settings.step_size * gradient[part][k] / std::sqrt(squares[part][k]);
      }
    }
  }
  return best;
}

std::vector<ItemPair> sample_preference_pairs(const RatingRows& by_user, std::int64_t items,
                                              std::int64_t per_rating, std::uint64_t seed,
                                              std::int64_t pass) {
  constexpr char kName[] = "trees";
  const PhiloxKey key = make_key(
      {.seed = seed, .purpose = Purpose::kReplay, .click_model = name_hash(kName, sizeof kName - 1)});
  std::vector<ItemPair> pairs;
  pairs.reserve(by_user.others.size() * per_rating);
  for (std::int64_t user = 0; user < by_user.rows(); ++user) {
    const std::span<const std::int32_t> rated = by_user.others_of(user);
    const std::span<const float> ratings = by_user.ratings_of(user);
    for (std::size_t place = 0; place < rated.size(); ++place) {
      RngStream draws(key, static_cast<std::uint32_t>(pass), static_cast<std::uint32_t>(user),
                      static_cast<std::uint32_t>(rated[place]));
      for (std::int64_t number = 0; number < per_rating; ++number) {
        for (int draw = 0; draw < kMostDraws; ++draw) {
          const auto other = static_cast<std::int32_t>(draws.index_of(items));
          if (!is_preferred(rated, ratings, ratings[place], other)) continue;
          pairs.push_back({static_cast<std::int32_t>(user), rated[place], other});
          break;
        }
      }
    }
  }
  return pairs;
}

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
    const std::vector<ItemPair> pairs =
        sample_preference_pairs(by_user, items, 1, settings.seed, -1 - pass);
    for (const ItemPair& pair : pairs) {
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
