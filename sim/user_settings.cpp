#include "sim/user_settings.h"

namespace olrank {

const Schema& UserSettings::schema() {
  using S = UserSettings;
  static const Schema schema =
      SchemaBuilder<S>(
          "user",
          "A simulated user with a table of its own; any number of these. `clicks.models` calls "
          "it by name, and what it leaves open is as `[clicks]` says.")
          .repeated()
          .file_only()
          .field("name", &S::name, "what `clicks.models` and the folders of its trials call it; unique")
          .field("kind", &S::kind, "the click model it follows; that of `[clicks]` unless set")
          .field("click", &S::click,
                 "P(click | grade), from grade 0; at least as many as the data has grades")
          .at_least(0)
          .at_most(1)
          .field("stop", &S::stop,
                 "P(stop | grade), as many as `click`, for kind `dependent`; without any it never stops")
          .at_least(0)
          .at_most(1)
          .field("examination", &S::examination,
                 "P(examined) by rank, from the top, for kind `position`, and none behind its end; without "
                 "any "
                 "it goes by `position_bias`")
          .at_least(0)
          .at_most(1)
          .field(
              "stop_draw", &S::stop_draw,
              "whether it may stop after clicks only, or after every document; `stop` of `[clicks]` unless "
              "set")
          .field("noise", &S::noise,
                 "probability that an examined document's click is flipped; that of `[clicks]` unless set")
          .at_least(0)
          .at_most(1)
          .field("position_bias", &S::position_bias,
                 "exponent of 1/rank for kind `position`; that of `[clicks]` unless set")
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
