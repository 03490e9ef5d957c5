#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/interface.h"
#include "core/io/state_archive.h"
#include "core/random/rng_stream.h"
#include "models/labels/label_objective.h"
#include "models/labels/label_settings.h"

namespace olrank {

/// λ/2 ‖w‖² + l1 ‖w‖₁.
double penalty(const LabelSettings& settings, std::span<const float> theta);

/// Minimises mean loss + penalty(), pass by pass. The order of its draws follows from the key alone.
class LabelSolver : public Interface, public Stateful {
 public:
  /// One pass over the queries, or one iteration on all of them. Returns the objective: where parameters
  /// move during the pass, the mean of the losses that were met, plus the penalty at its end.
  virtual double advance() = 0;
  /// Whether further passes change nothing.
  virtual bool converged() const { return false; }
  /// Returns what has been found so far.
  virtual std::span<const float> theta() const = 0;
  /// The parameters of the latest step, where theta() is a mean of several.
  virtual std::span<const float> latest() const { return theta(); }
};

/// The objective has to outlive the solver.
std::unique_ptr<LabelSolver> make_label_solver(const LabelSettings& settings, LabelObjective& objective,
                                               PhiloxKey key, std::vector<float> first_theta);

std::unique_ptr<LabelSolver> make_adam(const LabelSettings& settings, LabelObjective& objective,
                                       PhiloxKey key, std::vector<float> first_theta);
std::unique_ptr<LabelSolver> make_lbfgs(const LabelSettings& settings, LabelObjective& objective,
                                        std::vector<float> first_theta);

/// The step of the guarantee of averaged descent over n queries: η = W/(G R_X √(2n)), with W the radius,
/// or 1 without one. Tewari and Chaudhuri, "Generalization error bounds for learning to rank: does the
/// length of document lists matter?", ICML 2015, Theorem 4.
double guaranteed_step(const LabelSettings& settings, const LabelObjective& objective);

/// The nearest point of the ball ‖w‖ ≤ radius, in place.
void project_on_ball(BallNorm norm, double radius, std::span<double> w);
/// argmin_u ½‖u − w‖² + weight ‖u‖₁, in place.
void shrink(double weight, std::span<double> w);

}  // namespace olrank
