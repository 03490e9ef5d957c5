#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/math/normal.h"
#include "core/math/portable_exp.h"

namespace olrank {

/// Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
/// A bijection of the 128-bit counter for each 64-bit key: any draw is computed from its counter alone, in
/// any order, on any thread, on CPU and GPU.
struct PhiloxCounter {
  std::uint32_t word[4];
};

struct PhiloxKey {
  std::uint32_t word[2];
};

OLRANK_HOST_DEVICE inline PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;  // golden ratio
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;  // √3 − 1
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter.word[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter.word[2];
    const auto high0 = static_cast<std::uint32_t>(product0 >> 32);
    const auto high1 = static_cast<std::uint32_t>(product1 >> 32);
    counter = PhiloxCounter{{high1 ^ counter.word[1] ^ key.word[0], static_cast<std::uint32_t>(product1),
                             high0 ^ counter.word[3] ^ key.word[1], static_cast<std::uint32_t>(product0)}};
    key.word[0] += kWeyl0;
    key.word[1] += kWeyl1;
  }
  return counter;
}

/// Every draw has a purpose. The numbers are part of every key: never renumber, only append.
enum class Purpose : std::uint64_t {
  kQuery = 1,           // which query a round asks
  kList = 2,            // the order within what is uncertain, Plackett-Luce draws
  kClick = 3,           // the user's coins
  kInitialisation = 4,  // a network's first parameters
  kLabelNoise = 5,      // an ensemble's perturbed labels
  kBatch = 6,           // order of mini-batches, zipping of matched pairs
  kDirection = 7,       // candidate directions of dueling bandits
  kInterleaving = 8,    // team drafts
  kSynthetic = 9,       // generated data
  kSplit = 10,          // queries to folds
  kProbe = 11,          // random vectors of numerical checks
  kResampling = 12,     // redrawn samples and flipped signs of statistics
  kSearch = 13,         // settings that tuning tries
  kReplay = 14,         // pairs of the history that a round trains on again
  kDictionary = 15,     // pairs that stand for all in a covariance
  kTemplate = 16,       // documents that move to keep groups in balance
  kRestart = 17,        // parameters that a training starts at
  kPriorNoise = 18,     // an ensemble's perturbed priors
  kScores = 19,         // scores that a posterior draws
};

/// Identifies the random streams of a trial. It contains neither a trial number nor a ranker's name, so
/// adding, removing or sharding rankers changes no draws, and all rankers of a trial get the same ones.
struct KeySource {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::kQuery;
  std::uint64_t fold = 0;
  std::uint64_t click_model = 0;  // hash of the model's name: name_hash()
  std::uint64_t member = 0;       // of an ensemble; 0 elsewhere
};

/// The 64-bit key of one kind of draws: XXH3-64 of the five numbers in little-endian order.
PhiloxKey make_key(const KeySource& source);

/// The key of the draws of one round, for draws that have rounds of their own or none.
OLRANK_HOST_DEVICE inline PhiloxKey key_of_round(PhiloxKey key, std::uint32_t round) {
  const PhiloxCounter bits = philox4x32_10({{round, 0, 0, 0}}, key);
  return {{bits.word[0], bits.word[1]}};
}

/// The hash of a name for a KeySource.
std::uint64_t name_hash(const char* name, std::size_t size);

/// A uniform double in [0, 1) with 53 random bits.
OLRANK_HOST_DEVICE inline double uniform_from_bits(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 21) | (low >> 11);
  return static_cast<double>(bits) * 0x1.0p-53;
}

/// A standard normal from 52 random bits: the quantile at the middle of one of 2^52 equal cells.
OLRANK_HOST_DEVICE inline double normal_from_bits(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 20) | (low >> 12);
  return normal_quantile(exact_mul(exact_add(static_cast<double>(bits), 0.5), 0x1.0p-52));
}

/// Draws at one position: (round, document, position or pair). The counter's fourth word counts blocks of
/// four 32-bit numbers; another stream at the same position gives the same draws.
class RngStream {
 public:
  OLRANK_HOST_DEVICE RngStream(PhiloxKey key, std::uint32_t round, std::uint32_t document = 0,
                               std::uint32_t position = 0)
      : key_(key), counter_{{round, document, position, 0}}, block_{{0, 0, 0, 0}} {}

  OLRANK_HOST_DEVICE std::uint32_t next_bits() {
    if (used_ == 4) {
      block_ = philox4x32_10(counter_, key_);
      ++counter_.word[3];
      used_ = 0;
    }
    return block_.word[used_++];
  }

  /// Draws from [0, 1).
  OLRANK_HOST_DEVICE double uniform() {
    const std::uint32_t high = next_bits();
    return uniform_from_bits(high, next_bits());
  }

  /// Draws from [0, bound), each with the same probability; bound > 0. Lemire, "Fast random integer
  /// generation in an interval", TOMACS 2019: multiply, and redraw in the few cases that would favour small
  /// numbers.
  OLRANK_HOST_DEVICE std::uint32_t index(std::uint32_t bound) {
    assert(bound > 0);
    std::uint64_t product = std::uint64_t{next_bits()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t threshold = (0U - bound) % bound;
      while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next_bits()} * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  /// Draws below any count; below 2³² this is the draw of index().
  std::int64_t index_of(std::int64_t count);

  OLRANK_HOST_DEVICE double normal() {
    const std::uint32_t high = next_bits();
    return normal_from_bits(high, next_bits());
  }

  /// A uniform random order of `items` (Fisher-Yates, from the back).
  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[index(static_cast<std::uint32_t>(i))]);
    }
  }

  /// Fills `vector` with a uniform point of the unit sphere.
  void unit_vector(std::span<double> vector);

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_;
  int used_ = 4;
};

}  // namespace olrank
