#pragma once

#include <string>
#include <vector>

#include "core/settings/schema.h"
#include "sim/click_settings.h"

namespace olrank {

/// One [[user]]: a simulated user with a table of its own.
struct UserSettings {
  std::string name;
  ClickKind kind = ClickKind::kDependent;
  std::vector<double> click;        // P(click | grade), by grade
  std::vector<double> stop;         // P(stop | grade), by grade; empty: never stops
  std::vector<double> examination;  // P(examined), by rank; empty: by position_bias
  StopDraw stop_draw = StopDraw::kAfterClick;
  double noise = 0.0;
  double position_bias = 1.0;  // η

  static const Schema& schema();
  /// [clicks] sets the defaults of every user.
  static UserSettings defaults(const ClickSettings& clicks);
};

}  // namespace olrank
