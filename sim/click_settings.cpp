#include "sim/click_settings.h"

namespace olrank {

const Schema& ClickSettings::schema() {
  using S = ClickSettings;
  static const Schema schema =
      SchemaBuilder<S>("clicks", "Which simulated users click.")
          .field("models", &S::models, "users, each with trials of its own")
          .one_of({"perfect", "navigational", "informational"})
          .flag("clicks")
          .field("stop", &S::stop, "whether a user may stop after clicks only, or after every document")
          .build();
  return schema;
}

ClickSettings ClickSettings::defaults(ProtocolName protocol) {
  ClickSettings settings;
  if (protocol == ProtocolName::kReference) settings.stop = StopDraw::kEveryDoc;
  return settings;
}

}  // namespace olrank
