#include "sim/user_settings.h"

namespace olrank {

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
                 "P(examined) by rank from the top for kind `position`, 0 beyond the end of the list; if "
                 "empty, `position_bias` applies")
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
                 "exponent of 1/rank for kind `position`; default: that of `[clicks]`")
          .symbol("η")
          .at_least(0)
          .build();
  return schema;
}

UserSettings UserSettings::defaults(const ClickSettings& clicks) {
  UserSettings user;
  user.kind = clicks.kind;
  user.stop_draw = clicks.stop;
  user.noise = clicks.noise;
  user.position_bias = clicks.position_bias;
  return user;
}

}  // namespace olrank
