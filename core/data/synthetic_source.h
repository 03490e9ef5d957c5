#pragma once

#include <cstdint>
#include <string_view>

#include "core/settings/enum_names.h"

namespace olrank {

enum class SyntheticFamily { kMslrLike, kYahooLike, kSmall, kRealisable };

/// A source is what "synth:NAME?key=value&…" asks for. The family sets every default.
struct SyntheticSource {
  SyntheticFamily family = SyntheticFamily::kMslrLike;
  std::int64_t queries = 0;       // of the training part, 1 … 10,000,000
  std::int64_t test_queries = 0;  // of the test part and of the validation part, 1 … 10,000,000
  std::int64_t docs = 0;          // mean a query, 1 … 100,000; realisable: of each query, 2 … 32
  std::int64_t features = 0;      // 10 … 100,000; realisable: 2 … 100,000
  double noise = 0.0;             // standard deviations of the noise-free relevance, 0 … 100
  double nonlinearity = 0.0;      // share of its variance that is bumps and products, 0 … 1
  std::uint64_t seed = 1;
  double group_share = 0.0;    // of group A; 0: no groups
  double group_gap = 0.0;      // mean grade of group A minus that of group B
  std::int64_t embedding = 0;  // numbers of a vector of norm 1 behind the features, 0 … 10,000; 0: none
  std::int64_t subspace = 8;   // texts to which it is similar if it is relevant, 1 … embedding
  bool projection = false;     // in place of the vector, its similarities to these texts
  std::int64_t units = 0;      // realisable: hidden units of the target, 0 … 1,000; 0: linear
  double gap = 0.6;  // realisable: between the target's values at neighbouring grades, 0.001 … 10

  bool is_realisable() const { return family == SyntheticFamily::kRealisable; }
  bool has_groups() const { return group_share > 0.0; }
  bool has_embedding() const { return embedding > 0; }
  /// Counts also the columns behind the features: those of the vector, and the one that shows the group.
  std::int64_t columns() const {
    const std::int64_t of_vector = projection ? subspace : embedding;
    return features + (has_embedding() ? of_vector : 0) + (has_groups() ? 1 : 0);
  }
};

/// True for what starts with "synth:".
bool is_synthetic(std::string_view source);

/// Throws InvalidArgument, naming the nearest known name or key, or the bounds of a value outside them.
SyntheticSource parse_synthetic_source(std::string_view source);

template <>
struct EnumNames<SyntheticFamily> {
  static constexpr std::array values =
      names_in_order<SyntheticFamily>("mslr-like", "yahoo-like", "small", "realisable");
};

}  // namespace olrank
