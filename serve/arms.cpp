#include "serve/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/feedback/preference_pairs.h"
#include "core/io/fingerprint.h"
#include "core/settings/toml_document.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

/// The setting of --arms that is meant; empty for the name of an arm.
std::string near_setting(std::string_view key) {
  std::string near;
  int fewest = static_cast<int>(key.size() / 3);
  for (const std::string& setting : ArmPlan::schema().keys()) {
    if (setting == "names" || setting == "shares" || setting == "models") continue;
    if (setting == key) return setting;
    if (const int edits = edit_distance(key, setting); edits <= fewest) {
      fewest = edits;
      near = setting;
    }
  }
  return near;
}

}  // namespace

const Schema& ArmPlan::schema() {
  using S = ArmPlan;
  static const Schema schema =
      SchemaBuilder<S>("arms", "The rankers whose lists a service shows (docs/PRODUCTION.md).")
          .field("names", &S::names, "the arms: learner, incumbent, and names of models")
          .field("shares", &S::shares, "their shares of the traffic")
          .unit("%")
          .field("interleave", &S::interleave, "whether each list is drafted from two arms")
          .field(
              "promote", &S::promote,
              "`manual`: the shares are as given; `auto`: the learner climbs from 0 to 100 % of what the "
              "holdout leaves, and falls back to 0")
          .field("margin", &S::margin,
                 "with promote=auto, the share of the incumbent's clicks that the learner may cost",
                 above(0.0, 50.0))
          .unit("%")
          .field("holdout", &S::holdout,
                 "with promote=auto, the share of traffic that the incumbent keeps, to compare with",
                 above(0.0, 50.0))
          .unit("%")
          .field("observe", &S::observe,
                 "with promote=auto, the lists to learn from before the learner's own are shown", {1})
          .field("keep_top", &S::keep_top, "ranks that learner's lists have as the incumbent has them", {0})
          .field("max_displacement", &S::max_displacement,
                 "ranks that a document may move from its place in the incumbent order; 0: any number", {0})
          .field("models", &S::models, "fingerprints of the arms that are models")
          .build();
  return schema;
}

ArmPlan ArmPlan::parse(std::string_view text) {
  constexpr std::string_view kOrigin = "--arms";
  ArmPlan plan;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw_error<InvalidArgument>(
          "{}: '{}' must be NAME=SHARE or SETTING=VALUE, as in learner=50,incumbent=50.", kOrigin, item);
    }
    const std::string_view key = item.substr(0, equals);
    const std::string origin = fmt::format("{} {}", kOrigin, key);
    const std::string near = near_setting(key);
    if (!near.empty() && near == key) {
      assign_setting_text(schema(), &plan, key, item.substr(equals + 1), origin);
      continue;
    }
    if (!near.empty()) {
      throw_error<InvalidArgument>(
          "{0}: There is no setting '{1}' of {0}. Did you mean '{2}'? Name an arm less like a setting.",
          kOrigin, key, near);
    }
    ArmPlan one;
    assign_setting_text(schema(), &one, "shares", fmt::format("[{}]", item.substr(equals + 1)), origin);
    if (one.shares.size() != 1) throw_error<InvalidArgument>("{}: Give one share in percent.", origin);
    plan.names.emplace_back(key);
    plan.shares.push_back(one.shares.front());
  }
  if (plan.promote == Promotion::kAuto && plan.names.empty()) {
    plan.names = {std::string(kLearner), std::string(kIncumbent)};
    plan.shares = {0.0, 100.0};
  }
  plan.check(kOrigin);
  return plan;
}

void ArmPlan::check(std::string_view origin) const {
  const auto refuse = [&](const std::string& sentence) {
    throw_error<InvalidArgument>("{}: {}", origin, sentence);
  };
  if (names.size() != shares.size()) refuse("Each arm needs its share.");
  if (names.size() < 2) refuse("Name at least two arms, as in learner=50,incumbent=50.");
  for (std::size_t arm = 0; arm < names.size(); ++arm) {
    if (!is_plain_name(names[arm]) || names[arm] == kDrafted)
      refuse(fmt::format("'{}' cannot name an arm: take up to 40 letters, digits, - and _.", names[arm]));
    if (std::count(names.begin(), names.end(), names[arm]) > 1)
      refuse(fmt::format("Arm '{}' appears twice.", names[arm]));
    if (!(shares[arm] >= 0.0 && shares[arm] <= 100.0))
      refuse(fmt::format("The share of '{}' must be from 0 to 100 %, not {}.", names[arm], shares[arm]));
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (std::abs(sum - 100.0) > 1e-9) refuse(fmt::format("The shares sum to {} %, not 100.", sum));
  if (interleave && names.size() != 2) refuse("Lists are interleaved from two arms: name two.");
  const bool both = names.size() == 2 && has(kLearner) && has(kIncumbent);
  if (promote == Promotion::kAuto && (!both || interleave)) {
    refuse(
        "promote=auto compares the learner with the incumbent: name these two or none, and do not "
        "interleave.");
  }
  if (limits_lists() && !has(kIncumbent))
    refuse("keep_top and max_displacement need the arm 'incumbent', whose order requests bring.");
}

ArmPlan ArmPlan::parse_toml_text(std::string_view text, const std::string& origin) {
  ArmPlan plan;
  for (const auto& table : parse_toml(text, origin).tables) {
    if (table.name != schema().table)
      throw_error<InvalidArgument>("{}: This file does not describe the arms of a service.", table.origin);
    for (const auto& entry : table.entries)
      assign_setting(schema(), &plan, entry.key, entry.value, entry.origin);
  }
  plan.check(origin);
  return plan;
}

bool ArmPlan::has(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> ArmPlan::model_names() const {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [](const std::string& name) { return name != kLearner && name != kIncumbent; });
  return found;
}

std::size_t ArmPlan::baseline() const {
  const auto found = std::find(names.begin(), names.end(), kIncumbent);
  return found != names.end() ? static_cast<std::size_t>(found - names.begin()) : 0;
}

std::string ArmPlan::id() const {
  return fingerprint_of(toml_text()).hex().substr(0, 12);
}

std::int64_t ArmPlan::bucket_of(std::string_view id, std::string_view user) {
  return name_number(fmt::format("{}/{}", id, user)) % kBuckets;
}

std::size_t ArmPlan::arm_of(std::int64_t bucket, std::span<const double> shares) {
  const double place = (static_cast<double>(bucket) + 0.5) * 100.0 / static_cast<double>(kBuckets);
  double end = 0.0;
  std::size_t last = 0;  // with a share, where rounding keeps the sum below 100
  for (std::size_t arm = 0; arm < shares.size(); ++arm) {
    end += shares[arm];
    if (shares[arm] > 0.0) last = arm;
    if (place < end) return arm;
  }
  return last;
}

std::vector<std::int32_t> limited_list(std::span<const std::int32_t> list,
                                       std::span<const std::int32_t> incumbent, std::int64_t keep_top,
                                       std::int64_t max_displacement) {
  const std::int64_t docs = std::ssize(list);
  const std::int64_t most = max_displacement > 0 ? max_displacement : docs;
  std::vector<std::int64_t> place(docs);  // in the incumbent order
  for (std::int64_t rank = 0; rank < docs; ++rank) place[incumbent[rank]] = rank;
  std::vector<bool> placed(docs, false);
  std::vector<std::int32_t> limited;
  std::int64_t due = 0;    // incumbent ranks before it are placed
  std::int64_t begin = 0;  // ranks of `list` before it are placed
  while (std::ssize(limited) < docs) {
    const std::int64_t rank = std::ssize(limited);
    while (placed[incumbent[due]]) ++due;
    while (placed[list[begin]]) ++begin;
    std::int32_t next = incumbent[due];
    if (rank >= keep_top && due + most > rank) {
      std::int64_t at = begin;
      while (placed[list[at]] || place[list[at]] > rank + most) ++at;
      next = list[at];
    }
    placed[next] = true;
    limited.push_back(next);
  }
  return limited;
}

}  // namespace olrank
