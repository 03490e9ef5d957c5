#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// How a list is built from scores and certain orders, or from a posterior of the scores.
enum class ListRule { kCertain, kBlocks, kBlocksCertain, kGreedy, kSample, kUcb };
enum class AlphaSchedule { kConstant, kTheory };

/// When an order counts as certain, and how uncertain orders are explored.
struct ExplorationSettings {
  double alpha = 0.1;
  AlphaSchedule alpha_schedule = AlphaSchedule::kConstant;
  double c1 = 1.0;
  double c2 = 1.0;
  double delta = 0.1;
  ListRule list = ListRule::kCertain;
  bool refine = false;

  static const Schema& schema();
};

template <>
struct EnumNames<ListRule> {
  static constexpr std::array values = {
      std::pair{ListRule::kCertain, std::string_view("certain")},
      std::pair{ListRule::kBlocks, std::string_view("blocks")},
      std::pair{ListRule::kBlocksCertain, std::string_view("blocks-certain")},
      std::pair{ListRule::kGreedy, std::string_view("greedy")},
      std::pair{ListRule::kSample, std::string_view("sample")},
      std::pair{ListRule::kUcb, std::string_view("ucb")}};
};

/// Whether a list follows from the scores' posterior, not from certain orders.
inline bool follows_posterior(ListRule rule) {
  return rule == ListRule::kSample || rule == ListRule::kUcb;
}

template <>
struct EnumNames<AlphaSchedule> {
  static constexpr std::array values = {std::pair{AlphaSchedule::kConstant, std::string_view("constant")},
                                        std::pair{AlphaSchedule::kTheory, std::string_view("theory")}};
};

}  // namespace olrank
