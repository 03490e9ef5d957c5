#include "serve/service_identity.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/settings/toml_document.h"

namespace olrank {
namespace {

void add_differences(const Schema& schema, const void* stored, const void* requested,
                     std::string& differences) {
  for (const Setting& setting : schema.settings) {
    const std::string have = to_toml(setting.read(stored));
    const std::string want = to_toml(setting.read(requested));
    if (have == want) continue;
    if (!differences.empty()) differences += "; ";
    differences += fmt::format("{} is {}, not {}", setting.key, have, want);
  }
}

}  // namespace

const Schema& ServiceIdentity::schema() {
  using S = ServiceIdentity;
  static const Schema schema =
      SchemaBuilder<S>("service", "The settings that a service's state depends on.")
          .field("features", &S::features, "number of raw features per document")
          .at_least(1)
          .field("normalisation", &S::normalisation, "how raw features become model inputs")
          .field("cutoff", &S::cutoff, "default number of documents to show")
          .at_least(1)
          .field("seed", &S::seed, "seed for initialisation, exploration and noise")
          .field("model", &S::model, "fingerprint of the initial model")
          .build();
  return schema;
}

ModelMetadata model_metadata(const ServiceIdentity& identity) {
  return {{"normalisation", identity.normalisation},
          {"ranker", std::string(name_of(identity.ranker.kind))}};
}

std::string print_identity(const ServiceIdentity& identity) {
  return print_settings(ServiceIdentity::schema(), &identity) + "\n" +
         print_settings(RankerSettings::schema(), &identity.ranker);
}

ServiceIdentity parse_identity(std::string_view text, const std::string& origin) {
  ServiceIdentity identity;
  for (const auto& table : parse_toml(text, origin).tables) {
    const bool of_service = table.name == ServiceIdentity::schema().table;
    if (!of_service && table.name != RankerSettings::schema().table)
      throw InvalidArgument(fmt::format("{}: This file does not describe a service.", table.origin));
    const Schema& schema = of_service ? ServiceIdentity::schema() : RankerSettings::schema();
    void* object = of_service ? static_cast<void*>(&identity) : &identity.ranker;
    for (const auto& entry : table.entries)
      assign_setting(schema, object, entry.key, entry.value, entry.origin);
  }
  return identity;
}

std::string identity_difference(const ServiceIdentity& stored, const ServiceIdentity& requested) {
  std::string differences;
  add_differences(ServiceIdentity::schema(), &stored, &requested, differences);
  add_differences(RankerSettings::schema(), &stored.ranker, &requested.ranker, differences);
  return differences;
}

}  // namespace olrank
