#include "serve/service_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/settings/setting_sources.h"
#include "core/settings/toml_document.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/ranker_kinds.h"

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

constexpr std::array<std::string_view, 3> kServiceKeys = {"beta", "epsilon", "examination"};
/// They are part of the state's settings.
constexpr std::int64_t kMostRanks = 1000;

/// The rank's discount in DCG: how likely people look at it, as a share of the first rank.
std::vector<double> default_examination(std::int64_t ranks) {
  std::vector<double> examination;
  for (std::int64_t rank = 1; rank <= ranks; ++rank)
    examination.push_back(1.0 / std::log2(1.0 + static_cast<double>(rank)));
  return examination;
}

void refuse_settings_of_data(const GroupSettings& groups) {
  const GroupSettings defaults;
  for (const Setting& setting : GroupSettings::schema().settings) {
    if (setting.key == "exposure" || is_service_group_setting(setting)) continue;
    if (to_toml(setting.read(&groups)) == to_toml(setting.read(&defaults))) continue;
    throw_error<InvalidArgument>(
        "--groups {0}: A service gets each document's group with the request, so '{0}' has no meaning: "
        "remove it.",
        setting.key);
  }
  if (groups.exposure == ExposureKind::kExamined) {
    throw InvalidArgument(
        "--groups exposure: A service does not see which documents its users examine, so it counts "
        "exposure by position: remove exposure=examined.");
  }
}

}  // namespace

const Schema& ServiceIdentity::schema() {
  using S = ServiceIdentity;
  static const Schema schema =
      SchemaBuilder<S>("service", "The settings that a service's state depends on.")
          .field("features", &S::features, "number of raw features per document", {1})
          .field("feature_names", &S::feature_names, "their names")
          .field("feature_origins", &S::feature_origins, "where a search answer has them")
          .field("schema", &S::feature_schema, "what requests send, and how it becomes features")
          .field("first_names", &S::first_names, "the features of records without names")
          .field("normalisation", &S::normalisation, "how raw features become model inputs")
          .field("cutoff", &S::cutoff, "default number of documents to show", {1})
          .field("seed", &S::seed, "seed for initialisation, exploration and noise")
          .field("normalise_query", &S::normalise_query, "whether texts of queries are made alike")
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
  // Services of earlier versions have neither a device nor names nor a floor of exploration.
  const auto is_said = [&](const Setting& setting) {
    return setting.key == "device"            ? identity.device != "cpu"
           : setting.key == "feature_names"   ? !identity.feature_names.empty()
           : setting.key == "feature_origins" ? !identity.feature_origins.empty()
           : setting.key == "schema"          ? !identity.feature_schema.empty()
           : setting.key == "first_names"     ? !identity.first_names.empty()
           : setting.key == "normalise_query" ? identity.normalise_query
           : setting.key == "explore_floor"   ? identity.ranker.click.explore_floor != 0.0
                                              : true;
  };
  std::string text = print_settings(ServiceIdentity::schema(), &identity, is_said) + "\n" +
                     print_settings(RankerSettings::schema(), &identity.ranker, is_said);
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
        throw_error<InvalidArgument>("{}: The groups need beta and examination.", table.origin);
    } else {
      throw_error<InvalidArgument>("{}: This file does not describe a service.", table.origin);
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

ServiceIdentity with_changes(ServiceIdentity stored, const ServiceIdentity& requested) {
  // Groups have an examination for each rank of the cutoff.
  const bool has_ranks = stored.groups && requested.cutoff > std::ssize(stored.groups->examination);
  if (!has_ranks) stored.cutoff = requested.cutoff;
  stored.feature_origins = requested.feature_origins;
  stored.normalise_query = requested.normalise_query;
  stored.ranker.click.explore_floor = requested.ranker.click.explore_floor;
  stored.ranker.click.memory_limit = requested.ranker.click.memory_limit;
  return stored;
}

bool learn_alike(std::string_view one, std::string_view other, const std::string& origin) {
  if (one == other) return true;
  try {
    const ServiceIdentity wanted = parse_identity(other, origin);
    return print_identity(with_changes(parse_identity(one, origin), wanted)) == print_identity(wanted);
  } catch (const Error&) {  // it is none
    return false;
  }
}

bool is_service_group_setting(const Setting& setting) {
  return std::find(kServiceKeys.begin(), kServiceKeys.end(), setting.key) != kServiceKeys.end();
}

GroupSettings parse_service_groups(std::string_view text, std::int64_t cutoff) {
  GroupSettings groups = parse_group_settings(text, "--groups");
  refuse_settings_of_data(groups);
  if (!groups.beta) {
    throw InvalidArgument(
        "--groups: beta must be a number, as in --groups beta=1, or one number for each group behind A, as "
        "in beta=[1,2]. A service has no grades to compute beta from.");
  }
  groups.check_groups();
  if (cutoff > kMostRanks) {
    throw_error<InvalidArgument>("--groups counts the exposure of at most {} ranks, but --cutoff is {}.",
                                 kMostRanks, cutoff);
  }
  if (groups.examination.empty()) groups.examination = default_examination(cutoff);
  if (std::ssize(groups.examination) < cutoff) {
    throw_error<InvalidArgument>(
        "--groups examination: {} given, but lists show {} ranks: give a probability for each.",
        counted(groups.examination.size(), "value"), cutoff);
  }
  if (groups.examination.front() <= 0.0) {
    throw InvalidArgument(
        "--groups examination: The first probability is 0, but the first rank must be examined sometimes.");
  }
  return groups;
}

ExposureRule exposure_rule_of(const GroupSettings& groups) {
  return {groups.examination, groups.beta.value(), groups.epsilon * groups.examination.front()};
}

void check_service_fairness(const RankerSettings& ranker, const std::optional<GroupSettings>& groups,
                            std::int64_t cutoff) {
  if (!groups) {
    if (row_of(ranker.kind).needs_groups) {
      throw_error<InvalidArgument>(
          "Ranker '{}' needs the groups of documents: add --groups, as in --groups beta=1.",
          name_of(ranker.kind));
    }
    if (ranker.fair.fair != Fairness::kNone) {
      throw_error<InvalidArgument>(
          "--fair {} needs the groups of documents: add --groups, as in --groups beta=1.",
          name_of(ranker.fair.fair));
    }
    return;
  }
  check_group_count(ranker.fair, *groups->count(), name_of(ranker.kind));
  if (ranker.fair.fair == Fairness::kFairExp && cutoff > TemplateTable::kMostPlaces) {
    throw_error<InvalidArgument>(
        "--fair fairexp compares all templates of the ranks shown, which are {}: use a --cutoff of at most "
        "{}, or --fair fairco.",
        cutoff, TemplateTable::kMostPlaces);
  }
}

std::int64_t most_balanced_ranks(const RankerSettings& ranker, const GroupSettings& groups) {
  const std::int64_t ranks = std::ssize(groups.examination);
  const bool has_templates = ranker.fair.fair == Fairness::kFairExp;
  return has_templates ? std::min<std::int64_t>(ranks, TemplateTable::kMostPlaces) : ranks;
}

}  // namespace olrank
