#include "jobs/covariance/alpha_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "report/experiment_results.h"
#include "report/study.h"

namespace olrank {
namespace {

bool is_exact(const StudyRanker& ranker) {
  return ranker.cell.structure == kExactStructure;
}

/// The number of certain orders over all trials of a ranker, and the fraction of them that is wrong.
CalibrationPoint point_of(const ExperimentResults& results, const StudyRanker& ranker) {
  CalibrationPoint point{ranker.settings.explore.alpha, 0.0, 0.0};
  double wrong = 0.0;
  for (const TrialResults& trial : results.trials) {
    if (trial.identity.ranker != ranker.settings.name) continue;
    for (const CurveEvaluation& at : trial.curve.points) {
      const double share = at.values[Measure::kFalseCertain];
      if (!std::isfinite(share)) continue;
      wrong += share * at.certain_orders;
      point.certain_orders += at.certain_orders;
    }
  }
  point.false_certain = wrong / point.certain_orders;
  return point;
}

/// The values of α that are tried, rising.
constexpr double kAlphas[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0};

/// Rounded to four digits, for a configuration file.
double rounded(double alpha) {
  return std::strtod(fmt::format("{:.4g}", alpha).c_str(), nullptr);
}

}  // namespace

AlphaCalibration::AlphaCalibration(const Configuration& configuration, const StudySettings& study,
                                   std::vector<StudyRanker> rankers)
    : rankers_(std::move(rankers)), configuration_(configuration) {
  configuration_.study.reset();
  configuration_.data.evaluate = EvaluationPart::kVali;
  configuration_.protocol.rounds = study.calibration_rounds;
  configuration_.protocol.eval_every = study.calibration_rounds;
  configuration_.run.out = (std::filesystem::path(configuration.run.out) / "calibration").string();
  configuration_.rankers.clear();
  for (StudyRanker ranker : rankers_) {
    if (!has_alpha(ranker.cell)) continue;
    ranker.settings.posterior.shadow = ShadowCovariance::kNone;
    if (is_exact(ranker)) {
      configuration_.rankers.push_back(ranker.settings);
      continue;
    }
    for (const double alpha : kAlphas) configuration_.rankers.push_back(with_alpha(ranker, alpha).settings);
  }
}

bool AlphaCalibration::complete() const {
  const ExperimentResults results = read_experiment(configuration_.run.out);
  return results.finished == results.expected;
}

const StudyRanker& AlphaCalibration::exact_of(const StudyRanker& ranker) const {
  return *std::find_if(rankers_.begin(), rankers_.end(), [&](const StudyRanker& other) {
    return is_exact(other) && other.cell.width == ranker.cell.width &&
           other.cell.depth == ranker.cell.depth;
  });
}

std::vector<Calibration> AlphaCalibration::calibrations() const {
  const ExperimentResults results = read_experiment(configuration_.run.out);
  std::vector<Calibration> found;
  for (const StudyRanker& ranker : rankers_) {
    if (!has_alpha(ranker.cell)) continue;
    const CalibrationPoint exact = point_of(results, exact_of(ranker));
    Calibration calibration{
        ranker.cell.ranker, exact.false_certain, ranker.settings.explore.alpha, true, {}};
    if (is_exact(ranker)) {
      calibration.points = {exact};
    } else {
      for (const double alpha : kAlphas)
        calibration.points.push_back(point_of(results, with_alpha(ranker, alpha)));
      match_alpha(calibration);
      calibration.alpha = rounded(calibration.alpha);
    }
    found.push_back(std::move(calibration));
  }
  return found;
}

std::vector<StudyRanker> AlphaCalibration::matched(const std::vector<Calibration>& found) const {
  std::vector<StudyRanker> rankers = rankers_;
  for (StudyRanker& ranker : rankers) {
    for (const Calibration& calibration : found) {
      if (calibration.ranker != ranker.cell.ranker) continue;
      ranker.cell.alpha = calibration.alpha;
      ranker.settings.explore.alpha = calibration.alpha;
    }
  }
  return rankers;
}

}  // namespace olrank
