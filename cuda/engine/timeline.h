#pragma once

#include <string_view>
#include <vector>

#include "core/runtime/stage_clock.h"
#include "cuda/runtime/profiled_range.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The seconds of the stages of a round on the device.
class Timeline {
 public:
  /// Work started from now on belongs to this stage; to none if the name is empty.
  void mark(Stream stream, std::string_view stage) {
    range_.begin(stage);
    if (used_ == marks_.size()) marks_.emplace_back();
    marks_[used_].stage = stage;
    marks_[used_].event.record(stream);
    ++used_;
  }
  /// Adds the seconds of all stages and resets them; all marks must have passed.
  void collect(StageClock& clock) {
    for (std::size_t i = 0; i + 1 < used_; ++i) {
      if (!marks_[i].stage.empty())
        clock.add(marks_[i].stage, marks_[i + 1].event.seconds_since(marks_[i].event));
    }
    used_ = 0;
  }

 private:
  struct Mark {
    std::string_view stage;
    Event event;
  };
  ProfiledRange range_;
  std::vector<Mark> marks_;
  std::size_t used_ = 0;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
