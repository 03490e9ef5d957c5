#include "sim/click_settings.h"

namespace olrank {

const Schema& ClickSettings::schema() {
  using S = ClickSettings;
  static const Schema schema =
      SchemaBuilder<S>("clicks", "The simulated users who click.")
          .field("models", &S::models,
                 "simulated users, each with its own trials: `perfect`, `navigational`, `informational`, "
                 "or the name of a `[[user]]` or of one that a program registers")
          .flag("clicks")
          .field("kind", &S::kind,
                 "click model: `dependent` scans from the top and may stop, `cascade` scans to the first "
                 "click, `position` examines by rank, `dbn` scans until a clicked document satisfies or "
                 "patience ends, `ubm` examines by rank and last click")
          .one_of({"dependent", "cascade", "position", "dbn", "ubm"})
          .field("stop", &S::stop,
                 "whether a `dependent` user may stop only after a click or after every document")
          .field("noise", &S::noise, "probability that the click on an examined document is flipped")
          .at_least(0)
          .at_most(1)
          .field("position_bias", &S::position_bias,
                 "exponent of 1/rank, with ranks from 1, in the probability that a `position` user "
                 "examines the document at a rank; a `ubm` user has the distance to the last click in "
                 "place of the rank")
          .symbol("η")
          .at_least(0)
          .field("perseverance", &S::perseverance,
                 "probability that a `dbn` user who is not satisfied examines the next document")
          .symbol("γ")
          .at_least(0)
          .at_most(1)
          .field("grades", &S::grades,
                 "number of grades in the built-in users' tables: 2, 3 or 5; 0 derives it from the largest "
                 "grade in the data")
          .at_least(0)
          .at_most(5)
          .field(
              "grade_map", &S::grade_map,
              "grade of the built-in users' tables for each grade of the data, from grade 0: `[0, 0, 1, 1, "
              "2]` gives data of five grades the tables of three; if empty, every grade stays as it is")
          .at_least(0)
          .at_most(4)
          .build();
  return schema;
}

ClickSettings ClickSettings::defaults(ProtocolName protocol) {
  ClickSettings settings;
  if (protocol == ProtocolName::kReference) settings.stop = StopDraw::kEveryDoc;
  return settings;
}

const Schema& UserSettings::schema() {
  using S = UserSettings;
  static const Schema schema =
      SchemaBuilder<S>("user",
                       "A custom simulated user; any number of these tables. `clicks.models` refers to a "
                       "user by name. Keys that are left out take their values from `[clicks]`.")
          .repeated()
          .file_only()
          .field("name", &S::name,
                 "name used in `clicks.models` and in the folders of its trials; must be unique")
          .field("kind", &S::kind, "click model; default: that of `[clicks]`")
          .field("click", &S::click,
                 "P(click | grade) for grades 0, 1, …; must cover every grade in the data")
          .at_least(0)
          .at_most(1)
          .field("stop", &S::stop,
                 "P(stop | grade) for kind `dependent`, of the same length as `click`; if empty, the user "
                 "never stops")
          .at_least(0)
          .at_most(1)
          .field("examination", &S::examination,
                 "P(examined) by rank from the top for kind `position`, by distance to the last click for "
                 "kind `ubm`; 0 beyond the end of the list; if empty, `position_bias` applies")
          .at_least(0)
          .at_most(1)
          .field("stop_draw", &S::stop_draw,
                 "whether the user may stop only after a click or after every document; default: `stop` of "
                 "`[clicks]`")
          .field(
              "noise", &S::noise,
              "probability that the click on an examined document is flipped; default: that of `[clicks]`")
          .at_least(0)
          .at_most(1)
          .field("position_bias", &S::position_bias,
                 "exponent of 1/rank for kind `position`, of 1/distance for kind `ubm`; default: that of "
                 "`[clicks]`")
          .symbol("η")
          .at_least(0)
          .field(
              "satisfaction", &S::satisfaction,
              "P(satisfied | clicked, grade) for kind `dbn`, of the same length as `click`; if empty, the "
              "user is never satisfied")
          .at_least(0)
          .at_most(1)
          .field("perseverance", &S::perseverance,
                 "probability that a `dbn` user who is not satisfied examines the next document; default: "
                 "that of `[clicks]`")
          .symbol("γ")
          .at_least(0)
          .at_most(1)
          .field(
              "browsing", &S::browsing,
              "P(examined) for kind `ubm`, rank by rank: for rank r, the r probabilities for a last click "
              "at rank 0 (none), 1, …, r − 1; 0 beyond the last rank; replaces `examination`")
          .at_least(0)
          .at_most(1)
          .field("intents", &S::intents,
                 "users whose behaviour a user of kind `changing` takes, one after another; none of them "
                 "`changing`")
          .field("change_every", &S::change_every, "rounds until a `changing` user takes the next intent")
          .unit("rounds")
          .at_least(0)
          .field("repeat", &S::repeat,
                 "whether a `changing` user starts again after the last intent, or keeps it")
          .build();
  return schema;
}

UserSettings UserSettings::defaults(const ClickSettings& clicks) {
  UserSettings user;
  user.kind = clicks.kind;
  user.stop_draw = clicks.stop;
  user.noise = clicks.noise;
  user.position_bias = clicks.position_bias;
  user.perseverance = clicks.perseverance;
  return user;
}

}  // namespace olrank
