#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {

/// How lists follow from the scores of a model: by score, drawn in proportion to e^score, or by score with
/// a random document at some ranks; the order that requests brought, or that the learner would have shown.
struct ListPolicy {
  enum class Kind { kGreedy, kPlackettLuce, kEpsilon, kIncumbent, kCandidate };
  Kind kind = Kind::kGreedy;
  double epsilon = 0.0;

  /// "greedy", "plackett-luce", "epsilon=0.1", "incumbent" or "candidate". Throws InvalidArgument with the
  /// names.
  static ListPolicy parse(const std::string& text);
  std::string name() const;
  /// Whether lists of different scores are always the same.
  bool is_certain() const { return kind == Kind::kGreedy || is_logged(); }
  /// Whether the log has its order, and no model is asked.
  bool is_logged() const { return kind == Kind::kIncumbent || kind == Kind::kCandidate; }
  /// P(document at each rank | those above) of a list, by scores of all candidates.
  void probabilities(std::span<const double> scores, std::span<const std::int32_t> list,
                     std::span<double> probabilities) const;
  /// The first documents of a list that it makes; `list` says how many.
  void draw(std::span<const double> scores, RngStream& coins, std::span<std::int32_t> list) const;
};

}  // namespace olrank
