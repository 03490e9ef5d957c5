// The device entries of a build without CUDA.
#include "core/ops/visible_gpus.h"

namespace olrank {

GpuSurvey visible_gpus() {
  GpuSurvey survey;
  survey.absence = "this olrank was built without CUDA";
  return survey;
}

}  // namespace olrank
