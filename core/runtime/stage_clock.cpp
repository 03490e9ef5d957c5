#include "core/runtime/stage_clock.h"

namespace olrank {

std::size_t StageClock::index_of(std::string_view stage) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].name == stage) return i;
  }
  stages_.push_back({std::string(stage), 0.0});
  return stages_.size() - 1;
}

double StageClock::seconds(std::string_view stage) const {
  for (const Stage& known : stages_) {
    if (known.name == stage) return known.seconds;
  }
  return 0.0;
}

double StageClock::total() const {
  double sum = 0.0;
  for (const Stage& stage : stages_) sum += stage.seconds;
  return sum;
}

}  // namespace olrank
