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

}  // namespace olrank
