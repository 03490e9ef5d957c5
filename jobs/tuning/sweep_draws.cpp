#include "jobs/tuning/sweep_draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// At a share of the range, from 0 to 1.
double number_at(const SweepRange& range, double share) {
  if (!range.is_log) return range.from + share * (range.to - range.from);
  return std::exp(std::log(range.from) + share * (std::log(range.to) - std::log(range.from)));
}

SettingValue range_value(const SweepAxis& axis, double share) {
  const SweepRange& range = *axis.range;
  if (RankerSettings::schema().find(axis.key)->kind == SettingKind::kInteger) {
    // Each integer has the part of the range that rounds to it.
    const SweepRange wider{range.from - 0.5, range.to + 0.5, range.is_log};
    const double drawn = std::round(number_at(wider, share));
    return static_cast<std::int64_t>(std::clamp(drawn, range.from, range.to));
  }
  // Short numbers, for the names of folders and for people.
  const double rounded = std::strtod(fmt::format("{:.3g}", number_at(range, share)).c_str(), nullptr);
  return std::clamp(rounded, range.from, range.to);
}

}  // namespace

std::vector<SweepValues> draw_values(const std::vector<SweepAxis>& axes, const SearchSettings& search) {
  std::vector<SweepValues> drawn;
  for (std::int64_t draw = 0; draw < search.draws; ++draw) {
    SweepValues values;
    for (const SweepAxis& axis : axes) {
      RngStream coins(make_key({.seed = static_cast<std::uint64_t>(search.seed),
                                .purpose = Purpose::kSearch,
                                .click_model = name_hash(axis.key.data(), axis.key.size())}),
                      static_cast<std::uint32_t>(draw));
      if (axis.range) {
        values.emplace_back(axis.key, range_value(axis, coins.uniform()));
      } else {
        values.emplace_back(axis.key,
                            axis.values[coins.index(static_cast<std::uint32_t>(axis.values.size()))]);
      }
    }
    if (std::find(drawn.begin(), drawn.end(), values) == drawn.end()) drawn.push_back(std::move(values));
  }
  return drawn;
}

}  // namespace olrank
