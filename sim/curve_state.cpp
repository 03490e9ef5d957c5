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

void CurveState::fields(StateFields& state) {
  state.numbers("curve.bytes", bytes);
  state.numbers("curve.digest", digest.high, digest.low);
  state.numbers("curve.areas", offline_area, online_area, last_round, last_offline, last_online);
  state.numbers("curve.points", points);
}

}  // namespace olrank
