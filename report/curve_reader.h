#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "report/measure.h"

namespace olrank {

struct CurveEvaluation {
  std::int64_t round = 0;
  MeasureValues values;
  double certain_orders = 0.0;  // that false certainty is a share of
  double decisions = 0.0;       // that the differing ones are a share of
};

/// What can be read of a trial's curve: its points up to the first line that is none.
struct RecordedCurve {
  std::vector<CurveEvaluation> points;
  std::int64_t cutoff = 0;  // 0 without points
  std::string complaint;    // a sentence about the damaged line; empty for a whole curve
};

/// Reads curve.jsonl. A damaged or half-written line ends the curve there; throws only for a file that
/// cannot be read.
RecordedCurve read_curve(const std::filesystem::path& file);

}  // namespace olrank
