#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/protocol.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// What an offline figure does with a query that has no relevant document.
enum class EmptyQueries { kZero, kOne, kSkip };

/// How the rounds of a trial are played and judged.
struct ProtocolSettings {
  ProtocolName name = ProtocolName::kPaper;
  std::int64_t rounds = 2000;
  std::int64_t cutoff = 10;
  std::int64_t eval_every = 100;
  std::vector<std::int64_t> seeds = {1, 2, 3};
  EmptyQueries empty_queries = EmptyQueries::kZero;
  double discount = 0.9995;

  static const Schema& schema();
  static ProtocolSettings defaults(ProtocolName name);
};

template <>
struct EnumNames<EmptyQueries> {
  static constexpr std::array values = {std::pair{EmptyQueries::kZero, std::string_view("zero")},
                                        std::pair{EmptyQueries::kOne, std::string_view("one")},
                                        std::pair{EmptyQueries::kSkip, std::string_view("skip")}};
};

}  // namespace olrank
