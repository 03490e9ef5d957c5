#include "models/skeleton/network_shape.h"

#include <cmath>

namespace olrank {

NetworkShape network_shape(const NetworkSettings& settings, std::int64_t inputs) {
  if (settings.network == NetworkForm::kLinear) return linear_shape(inputs);
  if (settings.parameterisation == Parameterisation::kNtk) {
    return ntk_shape(inputs, settings.width, settings.depth);
  }
  return standard_shape(inputs, settings.width, settings.depth);
}

double output_scale_of(const NetworkSettings& settings) {
  const bool is_ntk = settings.parameterisation == Parameterisation::kNtk;
  return is_ntk ? std::sqrt(static_cast<double>(settings.width)) : 1.0;
}

Initialisation initialisation_of(const NetworkSettings& settings) {
  const bool symmetric =
      settings.network != NetworkForm::kLinear && (settings.parameterisation == Parameterisation::kNtk ||
                                                   settings.initialisation == FirstDraw::kSymmetric);
  return symmetric ? Initialisation::kSymmetric : Initialisation::kUniform;
}

}  // namespace olrank
