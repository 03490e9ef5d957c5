#pragma once

namespace olrank {

/// I_x(a, b), for a, b > 0 and x in [0, 1]; NaN elsewhere.
double regularised_incomplete_beta(double a, double b, double x);

/// P(|T| ≥ |t|) for Student's t with `freedom` degrees of freedom.
double student_t_two_sided(double t, double freedom);

/// The t that T stays below with `probability`, in (0, 1).
double student_t_quantile(double probability, double freedom);

}  // namespace olrank
