#include "serve/service_identity.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/settings/toml_document.h"

namespace olrank {
namespace {

void add_differences(const Schema& schema, const void* here, const void* asked, std::string& differences) {
  for (const Setting& setting : schema.settings) {
    const std::string have = to_toml(setting.read(here));
    const std::string want = to_toml(setting.read(asked));
    if (have == want) continue;
    if (!differences.empty()) differences += "; ";
    differences += fmt::format("{}: {} instead of {}", setting.key, have, want);
  }
}

}  // namespace

const Schema& ServiceIdentity::schema() {
  using S = ServiceIdentity;
  static const Schema schema =
      SchemaBuilder<S>("service", "What a service learns on.")
          .field("features", &S::features, "features of a document as it comes")
          .at_least(1)
          .field("normalisation", &S::normalisation, "how features become the model's inputs")
          .field("cutoff", &S::cutoff, "ranks shown where a request does not say")
          .at_least(1)
          .field("seed", &S::seed, "of initialisation, lists and noise")
          .field("model", &S::model, "fingerprint of the model it started from")
          .build();
  return schema;
}

std::string print_identity(const ServiceIdentity& identity) {
  return print_settings(ServiceIdentity::schema(), &identity) + "\n" +
         print_settings(RankerSettings::schema(), &identity.ranker);
}

ServiceIdentity read_identity(const std::filesystem::path& file) {
  ServiceIdentity identity;
  for (const auto& table : read_toml(file).tables) {
    const bool of_service = table.name == ServiceIdentity::schema().table;
    if (!of_service && table.name != RankerSettings::schema().table)
      throw InvalidArgument(fmt::format("{}: This is no description of a service.", table.origin));
    const Schema& schema = of_service ? ServiceIdentity::schema() : RankerSettings::schema();
    void* object = of_service ? static_cast<void*>(&identity) : &identity.ranker;
    for (const auto& entry : table.entries)
      assign_setting(schema, object, entry.key, entry.value, entry.origin);
  }
  return identity;
}

std::string identity_difference(const ServiceIdentity& here, const ServiceIdentity& asked) {
  std::string differences;
  add_differences(ServiceIdentity::schema(), &here, &asked, differences);
  add_differences(RankerSettings::schema(), &here.ranker, &asked.ranker, differences);
  return differences;
}

}  // namespace olrank
