#pragma once

#include <cstdint>
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
  double position_bias = 1.0;        // η
  std::vector<double> satisfaction;  // P(satisfied | clicked, grade), by grade; empty: never satisfied
  double perseverance = 0.9;         // γ
  std::vector<double> browsing;      // P(examined), by rank and last click; empty: by `examination`
  std::vector<std::string> intents;  // names of the users that a changing user is, one after another
  std::int64_t change_every = 0;     // rounds
  bool repeat = true;                // from the first intent again

  static const Schema& schema();
  /// [clicks] sets the defaults of every user.
  static UserSettings defaults(const ClickSettings& clicks);
};

}  // namespace olrank
