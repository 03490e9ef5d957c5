#include "jobs/experiment_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/throw_error.h"
#include "models/ranker_factory.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigurationFile = "config.toml";

/// "protocol.eval_every is 50, and was 100": the first difference; empty for none.
std::string first_difference(const Schema& schema, const std::string& place, const void* there,
                             const void* here, const std::vector<std::string_view>& free_keys) {
  for (const Setting& setting : schema.settings) {
    if (std::find(free_keys.begin(), free_keys.end(), setting.key) != free_keys.end()) continue;
    const SettingValue was = setting.read(there);
    const SettingValue is = setting.read(here);
    if (was != is)
      return fmt::format("{}.{} is {}, and was {}", place, setting.key, to_toml(is), to_toml(was));
  }
  return {};
}

template <class Named>
const Named* find_named(const std::vector<Named>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Named::name);
  return found == all.end() ? nullptr : &*found;
}

template <class T>
bool has_all(const std::vector<T>& whole, const std::vector<T>& part) {
  return std::all_of(part.begin(), part.end(), [&](const T& one) {
    return std::find(whole.begin(), whole.end(), one) != whole.end();
  });
}

template <class T>
std::vector<T> joined_lists(std::vector<T> first, const std::vector<T>& second) {
  for (const T& one : second) {
    if (std::find(first.begin(), first.end(), one) == first.end()) first.push_back(one);
  }
  return first;
}

std::string ranker_difference(const Configuration& recorded, const Configuration& run) {
  for (const RankerSettings& ranker : run.rankers) {
    const RankerSettings* there = find_named(recorded.rankers, ranker.name);
    if (there == nullptr) continue;
    std::vector<std::string_view> ignored;
    for (const Setting& setting : RankerSettings::schema().settings) {
      if (why_ignored(ranker, setting.key) && why_ignored(*there, setting.key))
        ignored.push_back(setting.key);
    }
    std::string difference =
        first_difference(RankerSettings::schema(), "ranker." + ranker.name, there, &ranker, ignored);
    if (!difference.empty()) return difference;
  }
  return {};
}

/// Names the first difference in what may not change while trials are added.
std::string experiment_difference(const Configuration& recorded, const Configuration& run) {
  std::string difference = first_difference(ProtocolSettings::schema(), "protocol", &recorded.protocol,
                                            &run.protocol, {"rounds", "seeds"});
  if (difference.empty())
    difference =
        first_difference(ClickSettings::schema(), "clicks", &recorded.clicks, &run.clicks, {"models"});
  if (difference.empty())
    difference = first_difference(GroupSettings::schema(), "groups", &recorded.groups, &run.groups, {});
  for (const UserSettings& user : run.users) {
    const UserSettings* there = find_named(recorded.users, user.name);
    if (!difference.empty() || there == nullptr) continue;
    difference = first_difference(UserSettings::schema(), "user." + user.name, there, &user, {});
  }
  return difference.empty() ? ranker_difference(recorded, run) : difference;
}

/// Refuses a run after which the folder would have trials of different lengths.
void check_lengths(const Configuration& recorded, const Configuration& run) {
  const std::int64_t there = recorded.protocol.rounds;
  const std::int64_t here = run.protocol.rounds;
  if (there == here) return;
  if (here < there) {
    throw_error<InvalidArgument>(
        "{} has {} rounds, more than the {} of this run: an experiment can be extended, not shortened. Use "
        "--rounds {} or more, or choose another --out.",
        run.run.out, there, here, there);
  }
  std::string missing;
  for (const RankerSettings& ranker : recorded.rankers) {
    if (find_named(run.rankers, ranker.name) == nullptr) missing = fmt::format("ranker '{}'", ranker.name);
  }
  if (!has_all(run.clicks.models, recorded.clicks.models)) missing = "all of its users";
  if (!has_all(run.data.folds, recorded.data.folds)) missing = "all of its folds";
  if (!has_all(run.protocol.seeds, recorded.protocol.seeds)) missing = "all of its seeds";
  if (missing.empty()) return;
  throw_error<InvalidArgument>(
      "{0} has {1} rounds. This run has {2} rounds, but not {3}, so trials of both lengths would stand "
      "side by side. Extend all trials first: olrank run --resume --out {0} --rounds {2}.",
      run.run.out, there, here, missing);
}

bool is_general_kind(const SettingOverride& override) {
  return override.table == RankerSettings::schema().table && override.key == "kind" &&
         override.ranker.empty();
}

}  // namespace

std::optional<Configuration> recorded_configuration(const fs::path& out) {
  const fs::path file = out / kConfigurationFile;
  std::error_code unreadable;
  if (!fs::is_regular_file(file, unreadable)) return std::nullopt;
  return resolve_configuration(file, {}, IgnoredSettings::kDrop);
}

std::string data_difference(const Configuration& configuration) {
  const auto recorded = recorded_configuration(configuration.run.out);
  if (!recorded) return "its fingerprint differs";
  std::string difference = first_difference(DataSettings::schema(), "data", &recorded->data,
                                            &configuration.data, {"folds", "cache", "max_memory"});
  if (!difference.empty()) return difference;
  const DataSettings& data = configuration.data;
  return fmt::format("the content of '{}' has changed since",
                     data.source.empty() ? data.train : data.source);
}

Configuration extended_experiment(const Configuration& recorded, const Configuration& run) {
  const std::string difference = experiment_difference(recorded, run);
  if (!difference.empty()) {
    throw_error<InvalidArgument>(
        "{}: {}. --resume can add rounds, seeds, folds, users and rankers. All other settings and the data "
        "must stay the same. Use the earlier value, or choose another --out.",
        run.run.out, difference);
  }
  check_lengths(recorded, run);
  Configuration whole = run;
  whole.data.folds = joined_lists(recorded.data.folds, run.data.folds);
  whole.protocol.seeds = joined_lists(recorded.protocol.seeds, run.protocol.seeds);
  whole.clicks.models = joined_lists(recorded.clicks.models, run.clicks.models);
  whole.users = recorded.users;
  for (const UserSettings& user : run.users) {
    if (find_named(recorded.users, user.name) == nullptr) whole.users.push_back(user);
  }
  whole.rankers = recorded.rankers;
  for (const RankerSettings& ranker : run.rankers) {
    if (find_named(recorded.rankers, ranker.name) == nullptr) whole.rankers.push_back(ranker);
  }
  return whole;
}

bool names_only_folder(std::span<const SettingOverride> overrides) {
  const auto is = [&](std::string_view table, std::string_view key) {
    return std::any_of(overrides.begin(), overrides.end(), [&](const SettingOverride& override) {
      return override.table == table && override.key == key;
    });
  };
  return is("run", "out") && !is("data", "source") && !is("data", "train");
}

Configuration continued_configuration(std::span<const SettingOverride> overrides) {
  std::string out;
  for (const SettingOverride& override : overrides) {
    if (override.table == "run" && override.key == "out") out = override.text;
  }
  const fs::path file = fs::path(out) / kConfigurationFile;
  std::error_code unreadable;
  if (!fs::is_regular_file(file, unreadable)) {
    throw_error<InvalidArgument>(
        "{} has no config.toml to continue. Name the configuration or the data, as for the first run.",
        out);
  }
  const auto kind = std::find_if(overrides.begin(), overrides.end(), is_general_kind);
  if (kind == overrides.end()) return resolve_configuration(file, overrides, IgnoredSettings::kRefuse);
  // New rankers, with the protocol and the data of the others.
  std::vector<SettingOverride> of_rankers;
  std::vector<SettingOverride> others;
  for (const SettingOverride& override : overrides)
    (override.table == RankerSettings::schema().table ? of_rankers : others).push_back(override);
  Configuration configuration = resolve_configuration(file, others, IgnoredSettings::kDrop);
  configuration.rankers = resolve_rankers({}, of_rankers, configuration.protocol.name);
  return configuration;
}

}  // namespace olrank
