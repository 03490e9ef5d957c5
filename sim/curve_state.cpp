#include "sim/curve_state.h"

#include <span>

namespace olrank {

Fingerprint chained(const Fingerprint& before, std::string_view text) {
  Fingerprinter fingerprinter;
  fingerprinter.add(&before, sizeof before);
  fingerprinter.add(text);
  return fingerprinter.value();
}

void CurveState::add(const CurvePoint& point, std::uint64_t line_bytes) {
  bytes += line_bytes;
  digest = chained(digest, curve_line(point, nullptr));
  const auto round = static_cast<double>(point.round);
  if (points > 0) {
    offline_area += 0.5 * (round - last_round) * (point.offline_ndcg + last_offline);
    online_area += 0.5 * (round - last_round) * (point.online_ndcg + last_online);
  }
  ++points;
  last_round = round;
  last_offline = point.offline_ndcg;
  last_online = point.online_ndcg;
}

void CurveState::save(StateWriter& state) const {
  state.put("curve.bytes", bytes);
  const std::uint64_t halves[] = {digest.high, digest.low};
  state.put("curve.digest", std::span<const std::uint64_t>(halves));
  const double areas[] = {offline_area, online_area, last_round, last_offline, last_online};
  state.put("curve.areas", std::span<const double>(areas));
  state.put("curve.points", points);
}

CurveState CurveState::load(StateReader& state) {
  CurveState curve;
  curve.bytes = state.get_one<std::uint64_t>("curve.bytes");
  std::uint64_t halves[2];
  state.get_into("curve.digest", std::span<std::uint64_t>(halves));
  curve.digest = {halves[0], halves[1]};
  double areas[5];
  state.get_into("curve.areas", std::span<double>(areas));
  curve.offline_area = areas[0];
  curve.online_area = areas[1];
  curve.last_round = areas[2];
  curve.last_offline = areas[3];
  curve.last_online = areas[4];
  curve.points = state.get_one<std::int64_t>("curve.points");
  return curve;
}

}  // namespace olrank
