#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/protocol.h"
#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// Which click model a user follows.
enum class ClickKind { kDependent, kCascade, kPosition, kDynamicBayesian, kUserBrowsing, kChanging };

/// When a user of the dependent click model decides whether to go on.
enum class StopDraw { kAfterClick, kEveryDoc };

/// The simulated users, and their defaults.
struct ClickSettings {
  std::vector<std::string> models = {"perfect", "navigational", "informational"};
  ClickKind kind = ClickKind::kDependent;
  StopDraw stop = StopDraw::kAfterClick;
  double noise = 0.0;
  double position_bias = 1.0;           // η
  double perseverance = 0.9;            // γ
  std::int64_t grades = 0;              // of the built-in tables; 0: follow the data
  std::vector<std::int64_t> grade_map;  // of each grade of the data, that of the built-in tables

  static const Schema& schema();
  static ClickSettings defaults(ProtocolName protocol);
};

template <>
struct EnumNames<ClickKind> {
  static constexpr std::array values =
      names_in_order<ClickKind>("dependent", "cascade", "position", "dbn", "ubm", "changing");
};

template <>
struct EnumNames<StopDraw> {
  static constexpr std::array values = names_in_order<StopDraw>("after-click", "every-doc");
};

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
