#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics/empty_queries.h"
#include "core/protocol.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// The model that each evaluation compares with by cosine.
enum class CosineReference { kNone, kOffline };

template <>
struct EnumNames<CosineReference> {
  static constexpr std::array values = {std::pair{CosineReference::kNone, std::string_view("none")},
                                        std::pair{CosineReference::kOffline, std::string_view("offline")}};
};

/// How the rounds of a trial are played and evaluated.
struct ProtocolSettings {
  ProtocolName name = ProtocolName::kRecommended;
  std::int64_t rounds = 2000;
  std::int64_t cutoff = 10;
  std::int64_t eval_every = 100;
  std::vector<std::int64_t> seeds = {1, 2, 3};
  EmptyQueries empty_queries = EmptyQueries::kZero;
  double discount = 0.9995;
  CosineReference cosine = CosineReference::kNone;
  std::vector<std::string> metrics;  // offline, beyond NDCG@cutoff

  static const Schema& schema();
  static ProtocolSettings defaults(ProtocolName name);
};

}  // namespace olrank
