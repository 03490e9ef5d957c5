#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/io/recipe.h"
#include "jobs/job.h"
#include "jobs/job_folder.h"

namespace olrank {

/// A training that goes on pass by pass, each with a line of the curve.
class PassJob : public Job {
 public:
  virtual bool finished() const = 0;
  /// The line before the first pass; none where nothing is known then.
  virtual std::optional<nlohmann::ordered_json> first_point();
  /// Makes a pass and returns its line.
  virtual nlohmann::ordered_json advance() = 0;

  std::uint64_t curve_bytes() const override { return curve_bytes_; }
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

  /// Adds the point to the folder's curve, with the seconds of the folder's clock as its "seconds".
  void append(nlohmann::ordered_json point, JobFolder& folder);
  /// The curve without its seconds, for the fingerprint of the result.
  const std::string& untimed_curve() const { return untimed_curve_; }

 protected:
  virtual void save_training(StateWriter& state) const = 0;
  virtual void load_training(StateReader& state) = 0;

 private:
  std::string untimed_curve_;
  std::uint64_t curve_bytes_ = 0;
};

/// Plays the passes that are left, from the folder's checkpoint if there is one and `resume`, and `told`
/// hears of each. Writes a checkpoint at most once a second, and when a signal stops it. Returns whether
/// the job has finished; its result is then still to be written.
bool play_passes(
    PassJob& job, JobFolder& folder, const Recipe& recipe, bool resume,
    const std::function<void(const nlohmann::ordered_json& point, double seconds, bool last)>& told);

}  // namespace olrank
