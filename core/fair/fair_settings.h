#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// How a ranker keeps the exposure of groups in balance.
enum class Fairness { kNone, kFairExp, kFairCo };
/// How FairExp finds the list of a template.
enum class TemplateSearch { kFairSwap, kExact };

/// The settings say what a ranker does about the groups of [groups].
struct FairSettings {
  Fairness fair = Fairness::kNone;
  TemplateSearch template_search = TemplateSearch::kFairSwap;
  double fair_gain = 0.01;  // λ_c

  static const Schema& schema();
};

/// Throws InvalidArgument for settings of a ranker that know no more than two groups.
void check_group_count(const FairSettings& settings, std::size_t groups, std::string_view ranker);

template <>
struct EnumNames<Fairness> {
  static constexpr std::array values = {std::pair{Fairness::kNone, std::string_view("none")},
                                        std::pair{Fairness::kFairExp, std::string_view("fairexp")},
                                        std::pair{Fairness::kFairCo, std::string_view("fairco")}};
};

template <>
struct EnumNames<TemplateSearch> {
  static constexpr std::array values = {std::pair{TemplateSearch::kFairSwap, std::string_view("fairswap")},
                                        std::pair{TemplateSearch::kExact, std::string_view("exact")}};
};

}  // namespace olrank
