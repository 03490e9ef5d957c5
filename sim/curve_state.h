#pragma once

#include <cstdint>
#include <string_view>

#include "core/io/fingerprint.h"
#include "core/io/state_fields.h"
#include "sim/curve.h"

namespace olrank {

/// Where a curve ends, and its running totals: what a checkpoint records of it.
struct CurveState {
  std::uint64_t bytes = 0;
  Fingerprint digest;         // chained over the lines without seconds
  double offline_area = 0.0;  // ∫ by rounds, trapezoids
  double online_area = 0.0;
  double last_round = 0.0;
  double last_offline = 0.0;
  double last_online = 0.0;
  std::int64_t points = 0;

  /// Adds an evaluation, which takes `line_bytes` in the file.
  void add(const CurvePoint& point, std::uint64_t line_bytes);
  /// The mean height of each curve; at round 0 its value.
  double mean_offline() const { return last_round > 0.0 ? offline_area / last_round : last_offline; }
  double mean_online() const { return last_round > 0.0 ? online_area / last_round : last_online; }

  void fields(StateFields& state);
};

/// The fingerprint of a text and of what came before it.
Fingerprint chained(const Fingerprint& before, std::string_view text);

}  // namespace olrank
