#include "sim/users.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text/nearest.h"
#include "sim/cascade_click_model.h"
#include "sim/click_tables.h"
#include "sim/dependent_click_model.h"
#include "sim/position_click_model.h"

namespace olrank {
namespace {

const UserSettings* find_user(std::span<const UserSettings> users, const std::string& name) {
  const auto found =
      std::find_if(users.begin(), users.end(), [&](const UserSettings& user) { return user.name == name; });
  return found == users.end() ? nullptr : &*found;
}

std::vector<std::string> names_of(std::span<const UserSettings> users) {
  std::vector<std::string> names = built_in_users();
  for (const UserSettings& user : users) names.push_back(user.name);
  return names;
}

[[noreturn]] void refuse_unknown(const std::string& name, std::span<const UserSettings> users) {
  const std::vector<std::string> names = names_of(users);
  throw InvalidArgument(fmt::format(
      "clicks.models: Unknown user '{}'. {} The users are {}; a [[user]] table defines another.", name,
      did_you_mean(name, names), joined(names)));
}

void check_probabilities(const UserSettings& user, std::string_view key, std::span<const double> values) {
  for (const double value : values) {
    if (value >= 0.0 && value <= 1.0) continue;
    throw InvalidArgument(fmt::format(
        "User '{}': the probabilities in '{}' must be between 0 and 1, not {}.", user.name, key, value));
  }
}

void refuse_key(const UserSettings& user, std::string_view key, ClickKind only) {
  throw InvalidArgument(fmt::format(
      "User '{0}' has kind \"{1}\", which does not use '{2}'. Remove it, or set kind = \"{3}\".", user.name,
      name_of(user.kind), key, name_of(only)));
}

void check_user(const UserSettings& user) {
  if (user.click.empty()) {
    throw InvalidArgument(fmt::format(
        "User '{}' has no click probabilities. Set 'click' to one for each grade, starting at grade 0.",
        user.name));
  }
  check_probabilities(user, "click", user.click);
  check_probabilities(user, "stop", user.stop);
  check_probabilities(user, "examination", user.examination);
  check_probabilities(user, "noise", {&user.noise, 1});
  if (!user.stop.empty() && user.kind != ClickKind::kDependent) {
    refuse_key(user, "stop", ClickKind::kDependent);
  }
  if (!user.examination.empty() && user.kind != ClickKind::kPosition) {
    refuse_key(user, "examination", ClickKind::kPosition);
  }
  if (!user.stop.empty() && user.stop.size() != user.click.size()) {
    throw InvalidArgument(fmt::format(
        "User '{}' has {} click but {} stop probabilities. Give one of each for every grade, or leave out "
        "'stop'.",
        user.name, user.click.size(), user.stop.size()));
  }
}

/// A built-in user: the defaults of [clicks] and its table.
UserSettings built_in_user(const std::string& name, const ClickSettings& clicks, int max_grade) {
  ClickTable table = built_in_table(name, table_grades(name, max_grade, clicks.grades));
  UserSettings user = UserSettings::defaults(clicks);
  user.name = name;
  user.click = std::move(table.click);
  if (user.kind == ClickKind::kDependent) user.stop = std::move(table.stop);
  return user;
}

UserSettings resolved_user(const std::string& name, const ClickSettings& clicks,
                           std::span<const UserSettings> users, int max_grade) {
  if (is_built_in_user(name)) {
    UserSettings user = built_in_user(name, clicks, max_grade);
    check_user(user);
    return user;
  }
  const UserSettings* user = find_user(users, name);
  if (user == nullptr) refuse_unknown(name, users);
  check_user(*user);
  if (max_grade >= std::ssize(user->click)) {
    throw InvalidArgument(
        fmt::format("The data has grade {}, but the table of user '{}' ends at grade {}. Give it {} click "
                    "probabilities.",
                    max_grade, name, user->click.size() - 1, max_grade + 1));
  }
  return *user;
}

}  // namespace

void check_users(const ClickSettings& clicks, std::span<const UserSettings> users) {
  table_grades(built_in_users().front(), 0, clicks.grades);
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (is_built_in_user(users[i].name)) {
      throw InvalidArgument(
          fmt::format("A [[user]] must not have the name of the built-in user '{}'. Choose another name.",
                      users[i].name));
    }
    if (find_user(users.first(i), users[i].name) != nullptr) {
      throw InvalidArgument(
          fmt::format("Two users are named '{}'. Give each [[user]] a unique name.", users[i].name));
    }
    check_user(users[i]);
  }
  for (const std::string& name : clicks.models) {
    if (!is_built_in_user(name) && find_user(users, name) == nullptr) refuse_unknown(name, users);
  }
}

std::unique_ptr<ClickModel> make_user(const std::string& name, const ClickSettings& clicks,
                                      std::span<const UserSettings> users, int max_grade) {
  UserSettings user = resolved_user(name, clicks, users, max_grade);
  switch (user.kind) {
    case ClickKind::kDependent:
      return std::make_unique<DependentClickModel>(ClickTable{std::move(user.click), std::move(user.stop)},
                                                   user.stop_draw, user.noise);
    case ClickKind::kCascade:
      return std::make_unique<CascadeClickModel>(std::move(user.click), user.noise);
    case ClickKind::kPosition:
      return std::make_unique<PositionClickModel>(std::move(user.click), std::move(user.examination),
                                                  user.position_bias, user.noise);
  }
  throw InvalidArgument(fmt::format("User '{}' has an unknown kind.", name));
}

std::string describe_user(const std::string& name, const ClickSettings& clicks,
                          std::span<const UserSettings> users, int max_grade) {
  const UserSettings user = resolved_user(name, clicks, users, max_grade);
  std::string text =
      fmt::format("{}: {}, P(click | grade) {}", name, name_of(user.kind), fmt::join(user.click, " "));
  switch (user.kind) {
    case ClickKind::kDependent:
      text += user.stop.empty() ? ", never stops"
                                : fmt::format(", P(stop | grade) {} {}", fmt::join(user.stop, " "),
                                              name_of(user.stop_draw));
      break;
    case ClickKind::kCascade:
      text += ", stops after the first click";
      break;
    case ClickKind::kPosition:
      text += user.examination.empty()
                  ? fmt::format(", P(examined) 1/rank^{}", user.position_bias)
                  : fmt::format(", P(examined) by rank {}", fmt::join(user.examination, " "));
      break;
  }
  return text + (user.noise > 0.0 ? fmt::format(", noise {}", user.noise) : ", no noise");
}

}  // namespace olrank
