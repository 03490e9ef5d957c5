#pragma once

#include <vector>

namespace olrank {

inline const std::vector<float> kMatrix = {1.0F, -2.5F, 0.1F, -0.0F, 1e-40F, 3e38F};
inline const std::vector<float> kBias = {7.0F};
inline const std::vector<float> kNothing;

}  // namespace olrank
