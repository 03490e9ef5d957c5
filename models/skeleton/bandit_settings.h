#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

enum class SimpleExploration { kGreedy, kEpsilon };
enum class Interleaving { kTeamDraft, kProbabilistic };

/// Exploration of the rankers without a posterior: ε-greedy, dueling bandits, Plackett-Luce.
struct BanditSettings {
  SimpleExploration exploration = SimpleExploration::kGreedy;
  double epsilon = 0.0;  // not set
  double exploration_radius = 1.0;
  Interleaving interleaving = Interleaving::kTeamDraft;
  std::int64_t candidates = 9;
  double exposure_clip = 1.2;
  std::int64_t refresh_rounds = 10;

  static const Schema& schema();
};

template <>
struct EnumNames<SimpleExploration> {
  static constexpr std::array values = {
      std::pair{SimpleExploration::kGreedy, std::string_view("greedy")},
      std::pair{SimpleExploration::kEpsilon, std::string_view("epsilon")}};
};

template <>
struct EnumNames<Interleaving> {
  static constexpr std::array values = {
      std::pair{Interleaving::kTeamDraft, std::string_view("team-draft")},
      std::pair{Interleaving::kProbabilistic, std::string_view("probabilistic")}};
};

}  // namespace olrank
