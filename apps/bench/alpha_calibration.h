#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "apps/bench/study_rankers.h"
#include "apps/configuration.h"

namespace olrank {

/// What a calibration plays, and afterwards what it found.
class AlphaCalibration {
 public:
  /// `configuration` is the study's; only its rankers, rounds and folder are others here.
  AlphaCalibration(const Configuration& configuration, const StudySettings& study,
                   std::vector<StudyRanker> rankers);

  /// The experiment of the calibration: full at its own α, every other structure with an α at each value
  /// tried. On the validation part, so that neither the queries nor the judgement of the study are used.
  const Configuration& configuration() const { return configuration_; }

  /// Whether every trial has finished.
  bool complete() const;
  std::vector<Calibration> calibrations() const;

  /// The rankers at the α that were found.
  std::vector<StudyRanker> matched(const std::vector<Calibration>& found) const;

 private:
  const StudyRanker& exact_of(const StudyRanker& ranker) const;

  std::vector<double> alphas_;
  std::vector<StudyRanker> rankers_;
  Configuration configuration_;
};

}  // namespace olrank
