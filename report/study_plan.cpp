#include "report/study_plan.h"

#include <algorithm>
#include <cmath>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

using nlohmann::json;

/// Isotonic regression by pooling adjacent violators: Ayer et al., "An empirical distribution function for
/// sampling with incomplete information", Annals of Mathematical Statistics 1955.
std::vector<CalibrationPoint> decreasing(const std::vector<CalibrationPoint>& points) {
  struct Pool {
    double sum = 0.0;
    double weight = 0.0;
    std::size_t points = 0;
    double mean() const { return sum / weight; }
  };
  std::vector<Pool> pools;
  for (const CalibrationPoint& point : points) {
    pools.push_back({point.false_certain * point.certain_orders, point.certain_orders, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() < pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().weight += last.weight;
      pools.back().points += last.points;
    }
  }
  std::vector<CalibrationPoint> curve = points;
  std::size_t at = 0;
  for (const Pool& pool : pools) {
    for (std::size_t i = 0; i < pool.points; ++i) curve[at++].false_certain = pool.mean();
  }
  return curve;
}

std::optional<double> optional_number(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

double number(const json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

/// Studies of earlier versions have no budgets.
std::optional<std::int64_t> optional_budget(const json& object) {
  const auto found = object.find("budget");
  return found == object.end() || found->is_null() ? std::nullopt
                                                   : std::optional(found->get<std::int64_t>());
}

StudyCell read_cell(const json& object) {
  return {object.at("ranker").get<std::string>(),
          object.at("structure").get<std::string>(),
          object.at("width").get<std::int64_t>(),
          object.at("depth").get<std::int64_t>(),
          optional_number(object.at("noise_variance")),
          optional_number(object.at("alpha")),
          optional_budget(object)};
}

Calibration read_calibration(const json& object) {
  Calibration calibration;
  calibration.ranker = object.at("ranker").get<std::string>();
  calibration.target = number(object.at("target"));
  calibration.alpha = object.at("alpha").get<double>();
  calibration.bracketed = object.at("bracketed").get<bool>();
  for (const json& point : object.at("points")) {
    calibration.points.push_back({point.at("alpha").get<double>(), number(point.at("false_certain")),
                                  point.at("certain_orders").get<double>()});
  }
  return calibration;
}

StudyPlan read_plan(const json& object) {
  StudyPlan plan;
  plan.matched_alpha = object.at("alpha").get<std::string>() == "matched";
  for (const json& cell : object.at("rankers")) plan.cells.push_back(read_cell(cell));
  if (const json& calibration = object.at("calibration"); calibration.is_object()) {
    plan.calibration_rounds = calibration.at("rounds").get<std::int64_t>();
    for (const json& one : calibration.at("rankers")) plan.calibrations.push_back(read_calibration(one));
  }
  return plan;
}

}  // namespace

const StudyCell* StudyPlan::exact_of(const StudyCell& cell) const {
  const auto found = std::find_if(cells.begin(), cells.end(), [&](const StudyCell& other) {
    return other.structure == kExactStructure && other.width == cell.width && other.depth == cell.depth;
  });
  return found == cells.end() ? nullptr : &*found;
}

void match_alpha(Calibration& calibration) {
  std::vector<CalibrationPoint> points;
  for (const CalibrationPoint& point : calibration.points) {
    if (point.certain_orders > 0.0) points.push_back(point);
  }
  calibration.bracketed = false;
  if (points.empty() || !std::isfinite(calibration.target)) return;
  const std::vector<CalibrationPoint> curve = decreasing(points);
  if (calibration.target >= curve.front().false_certain) {
    calibration.alpha = curve.front().alpha;
    calibration.bracketed = calibration.target == curve.front().false_certain;
    return;
  }
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const CalibrationPoint& above = curve[i - 1];
    const CalibrationPoint& below = curve[i];
    if (below.false_certain > calibration.target) continue;
    const double part =
        (above.false_certain - calibration.target) / (above.false_certain - below.false_certain);
    calibration.alpha = std::exp(std::log(above.alpha) + part * std::log(below.alpha / above.alpha));
    calibration.bracketed = true;
    return;
  }
  calibration.alpha = curve.back().alpha;
}

std::optional<StudyPlan> read_study_plan(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "study.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    return read_plan(parse_json(read_file(file, kLargestJson)));
  } catch (const json::exception&) {
    throw_error<IoError>("{}: This file is not a covariance study.", file.string());
  }
}

}  // namespace olrank
