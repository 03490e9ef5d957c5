#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "jobs/covariance/study_rankers.h"
#include "jobs/settings/configuration.h"

namespace olrank {

/// The trials of an α calibration, and their results.
class AlphaCalibration {
 public:
  /// `configuration` is the study's; the calibration replaces its rankers, rounds and folder.
  AlphaCalibration(const Configuration& configuration, const StudySettings& study,
                   std::vector<StudyRanker> rankers);

  /// The experiment of the calibration: `full` at its own α, and every other structure with an α at each
  /// value tried. It runs on the validation set, so it uses neither the study's queries nor its evaluation.
  const Configuration& configuration() const { return configuration_; }

  /// Whether every trial has finished.
  bool complete() const;
  std::vector<Calibration> calibrations() const;

  /// The study's rankers with the matched α.
  std::vector<StudyRanker> matched(const std::vector<Calibration>& found) const;

 private:
  const StudyRanker& exact_of(const StudyRanker& ranker) const;

  std::vector<StudyRanker> rankers_;
  Configuration configuration_;
};

}  // namespace olrank
