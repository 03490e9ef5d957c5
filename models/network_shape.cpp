#include "models/network_shape.h"

namespace olrank {

NetworkShape network_shape(const NetworkSettings& settings, std::int64_t inputs) {
  if (settings.network == NetworkForm::kLinear) return linear_shape(inputs);
  if (settings.parameterisation == Parameterisation::kNtk) {
    return ntk_shape(inputs, settings.width, settings.depth);
  }
  return standard_shape(inputs, settings.width, settings.depth);
}

Initialisation initialisation_of(const NetworkSettings& settings) {
  const bool symmetric =
      settings.network != NetworkForm::kLinear && (settings.parameterisation == Parameterisation::kNtk ||
                                                settings.initialisation == FirstDraw::kSymmetric);
  return symmetric ? Initialisation::kSymmetric : Initialisation::kUniform;
}

}  // namespace olrank
