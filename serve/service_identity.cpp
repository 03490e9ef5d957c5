#include "serve/service_identity.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "serve/service_groups.h"

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
          .field("feature_names", &S::feature_names, "their names")
          .field("normalisation", &S::normalisation, "how raw features become model inputs")
          .field("cutoff", &S::cutoff, "default number of documents to show")
          .at_least(1)
          .field("seed", &S::seed, "seed for initialisation, exploration and noise")
          .field("model", &S::model, "fingerprint of the initial model")
          .field("device", &S::device, "cpu or cuda")
          .build();
  return schema;
}

std::optional<ExposureRule> ServiceIdentity::exposure() const {
  if (!groups) return std::nullopt;
  return exposure_rule_of(*groups);
}

ModelMetadata model_metadata(const ServiceIdentity& identity) {
  ModelMetadata metadata = {{"normalisation", identity.normalisation},
                            {"ranker", std::string(name_of(identity.ranker.kind))}};
  if (!identity.feature_names.empty()) metadata.emplace_back("feature_names", identity.feature_names);
  return metadata;
}

std::string print_identity(const ServiceIdentity& identity) {
  // Services of earlier versions have neither a device nor names.
  const auto is_said = [&](const Setting& setting) {
    return setting.key == "device"          ? identity.device != "cpu"
           : setting.key == "feature_names" ? !identity.feature_names.empty()
                                            : true;
  };
  std::string text = print_settings(ServiceIdentity::schema(), &identity, is_said) + "\n" +
                     print_settings(RankerSettings::schema(), &identity.ranker);
  if (identity.groups)
    text += "\n" + print_settings(GroupSettings::schema(), &*identity.groups, is_service_group_setting);
  return text;
}

ServiceIdentity parse_identity(std::string_view text, const std::string& origin) {
  ServiceIdentity identity;
  for (const auto& table : parse_toml(text, origin).tables) {
    const auto read = [&](const Schema& schema, void* object) {
      SettingSources::apply_table(schema, object, table);
    };
    if (table.name == ServiceIdentity::schema().table) {
      read(ServiceIdentity::schema(), &identity);
    } else if (table.name == RankerSettings::schema().table) {
      read(RankerSettings::schema(), &identity.ranker);
    } else if (table.name == GroupSettings::schema().table) {
      read(GroupSettings::schema(), &identity.groups.emplace());
      if (!identity.groups->beta || identity.groups->examination.empty())
        throw InvalidArgument(fmt::format("{}: The groups need beta and examination.", table.origin));
    } else {
      throw InvalidArgument(fmt::format("{}: This file does not describe a service.", table.origin));
    }
  }
  return identity;
}

std::string identity_difference(const ServiceIdentity& stored, const ServiceIdentity& requested) {
  std::string differences;
  add_differences(ServiceIdentity::schema(), &stored, &requested, differences);
  add_differences(RankerSettings::schema(), &stored.ranker, &requested.ranker, differences);
  if (stored.groups && requested.groups) {
    add_differences(GroupSettings::schema(), &*stored.groups, &*requested.groups, differences);
  } else if (stored.groups || requested.groups) {
    differences += fmt::format("{}groups are {}", differences.empty() ? "" : "; ",
                               stored.groups ? "on, not off" : "off, not on");
  }
  return differences;
}

}  // namespace olrank
