#include "recommend/factors/pair_draws.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/math/pair_loss.h"
#include "core/random/rng_stream.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
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

}  // namespace olrank
