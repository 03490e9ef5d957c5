#include "serve/service_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/fair/templates.h"
#include "core/text/counted.h"
#include "models/ranker_kinds.h"

namespace olrank {
namespace {

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
    throw InvalidArgument(
        fmt::format("--groups {0}: A service gets each document's group with the request, so '{0}' has no "
                    "meaning: remove it.",
                    setting.key));
  }
  if (groups.exposure == ExposureKind::kExamined) {
    throw InvalidArgument(
        "--groups exposure: A service does not see which documents its users examine, so it counts "
        "exposure by position: remove exposure=examined.");
  }
}

}  // namespace

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
    throw InvalidArgument(fmt::format(
        "--groups counts the exposure of at most {} ranks, but --cutoff is {}.", kMostRanks, cutoff));
  }
  if (groups.examination.empty()) groups.examination = default_examination(cutoff);
  if (std::ssize(groups.examination) < cutoff) {
    throw InvalidArgument(
        fmt::format("--groups examination: {} given, but lists show {} ranks: give a probability for each.",
                    counted(groups.examination.size(), "value"), cutoff));
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
      throw InvalidArgument(
          fmt::format("Ranker '{}' needs the groups of documents: add --groups, as in --groups beta=1.",
                      name_of(ranker.kind)));
    }
    if (ranker.fair.fair != Fairness::kNone) {
      throw InvalidArgument(
          fmt::format("--fair {} needs the groups of documents: add --groups, as in --groups beta=1.",
                      name_of(ranker.fair.fair)));
    }
    return;
  }
  check_group_count(ranker.fair, *groups->count(), name_of(ranker.kind));
  if (ranker.fair.fair == Fairness::kFairExp && cutoff > TemplateTable::kMostPlaces) {
    throw InvalidArgument(fmt::format(
        "--fair fairexp compares all templates of the ranks shown, which are {}: use a --cutoff "
        "of at most {}, or --fair fairco.",
        cutoff, TemplateTable::kMostPlaces));
  }
}

std::int64_t most_balanced_ranks(const RankerSettings& ranker, const GroupSettings& groups) {
  const std::int64_t ranks = std::ssize(groups.examination);
  const bool has_templates = ranker.fair.fair == Fairness::kFairExp;
  return has_templates ? std::min<std::int64_t>(ranks, TemplateTable::kMostPlaces) : ranks;
}

}  // namespace olrank
