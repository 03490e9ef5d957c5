#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/measure.h"

namespace olrank {

/// Shown orders of one class of stated probability, whose documents have different grades.
struct StatedClass {
  double from = 0.0;   // the class ends where the next one begins, the last one at 1
  double wrong = 0.0;  // contradicted by the grades
  double of = 0.0;
};

struct CurveEvaluation {
  std::int64_t round = 0;
  MeasureValues values;
  double certain_orders = 0.0;      // the total behind kFalseCertain
  double decisions = 0.0;           // the total behind kDecisionsDiffer
  std::vector<StatedClass> stated;  // of rankers that state probabilities
};

/// A trial's curve, up to its first damaged line.
struct RecordedCurve {
  std::vector<CurveEvaluation> points;
  std::int64_t cutoff = 0;  // 0 without points
  std::string damage;       // a sentence about the damaged line; empty if the curve is intact
};

/// The number, or NaN where there is none.
double number_or_nan(const nlohmann::json& object, const char* key);

/// Reads an evaluation: a line of a curve, or the last one in a summary. Unknown metrics are those of a
/// program. Throws an exception of the JSON parser or of std::stoll if it is damaged.
CurveEvaluation read_evaluation(const nlohmann::json& evaluation, std::int64_t& cutoff);

/// kFalseCertain or kDecisionsDiffer over a whole trial, from the counts of its evaluations. NaN if nothing
/// was counted.
double whole_trial_share(const RecordedCurve& curve, Measure measure);

/// Reads curve.jsonl. A damaged or incomplete line ends the curve; throws only if the file is unreadable.
RecordedCurve read_curve(const std::filesystem::path& file);

}  // namespace olrank
