#include "sim/click_settings.h"

namespace olrank {

const Schema& ClickSettings::schema() {
  using S = ClickSettings;
  static const Schema schema =
      SchemaBuilder<S>("clicks", "Which simulated users click.")
          .field(
              "models", &S::models,
              "users, each with trials of its own: `perfect`, `navigational`, `informational`, or the name "
              "of a `[[user]]`")
          .flag("clicks")
          .field(
              "kind", &S::kind,
              "which click model users follow: scan and stop, scan to the first click, or examine by rank")
          .field("stop", &S::stop,
                 "whether a user of kind `dependent` may stop after clicks only, or after every document")
          .field("noise", &S::noise, "probability that an examined document's click is flipped")
          .at_least(0)
          .at_most(1)
          .field("position_bias", &S::position_bias,
                 "exponent of 1/rank, the probability with which a user of kind `position` examines the "
                 "document at a rank, from 1")
          .symbol("η")
          .at_least(0)
          .field("grades", &S::grades,
                 "grades of the built-in users' tables: 2, 3 or 5; 0 goes by the data's largest grade")
          .at_least(0)
          .at_most(5)
          .build();
  return schema;
}

ClickSettings ClickSettings::defaults(ProtocolName protocol) {
  ClickSettings settings;
  if (protocol == ProtocolName::kReference) settings.stop = StopDraw::kEveryDoc;
  return settings;
}

}  // namespace olrank
