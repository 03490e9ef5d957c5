#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/fair/exposure.h"
#include "core/fair/group_settings.h"
#include "core/settings/schema.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The settings of [groups] that a service has: its groups come with the requests, so only β, ε and the
/// probabilities of examination are left.
bool is_service_group_setting(const Setting& setting);

/// The value of --groups: "beta=1.2,epsilon=0.5". Fills in the examination of the first `cutoff` ranks if
/// it is not given. Throws InvalidArgument for settings that a service cannot follow.
GroupSettings parse_service_groups(std::string_view text, std::int64_t cutoff);

/// ε is in units of P(1) in the settings, and absolute in the rule.
ExposureRule exposure_rule_of(const GroupSettings& groups);

/// Throws InvalidArgument for a ranker that needs groups where there are none, and for lists that are too
/// long for templates.
void check_service_fairness(const RankerSettings& ranker, const std::optional<GroupSettings>& groups,
                            std::int64_t cutoff);

/// The largest k of a request: no more ranks than have a P, and with FairExp than templates have.
std::int64_t most_balanced_ranks(const RankerSettings& ranker, const GroupSettings& groups);

}  // namespace olrank
