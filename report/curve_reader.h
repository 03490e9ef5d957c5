#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/measure.h"

namespace olrank {

struct CurveEvaluation {
  std::int64_t round = 0;
  MeasureValues values;
  double certain_orders = 0.0;  // the total behind kFalseCertain
  double decisions = 0.0;       // the total behind kDecisionsDiffer
};

/// A trial's curve, up to its first damaged line.
struct RecordedCurve {
  std::vector<CurveEvaluation> points;
  std::int64_t cutoff = 0;  // 0 without points
  std::string damage;       // a sentence about the damaged line; empty if the curve is intact
};

/// Reads an evaluation: a line of a curve, or the last one in a summary. Unknown metrics are ignored.
/// Throws an exception of the JSON parser or of std::stoll if it is damaged.
CurveEvaluation read_evaluation(const nlohmann::json& evaluation, std::int64_t& cutoff);

/// Reads curve.jsonl. A damaged or incomplete line ends the curve; throws only if the file is unreadable.
RecordedCurve read_curve(const std::filesystem::path& file);

}  // namespace olrank
