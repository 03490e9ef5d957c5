#include "sim/trial_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "sim/click_models.h"
#include "sim/external_user.h"

namespace olrank {
namespace {

const UserSettings* find_user(std::span<const UserSettings> users, const std::string& name) {
  const auto found = std::ranges::find(users, name, &UserSettings::name);
  return found == users.end() ? nullptr : &*found;
}

/// None for a user with a table.
std::optional<RegisteredUser> external_user(const std::string& name, std::span<const UserSettings> users) {
  return find_user(users, name) == nullptr ? registered_user(name) : std::nullopt;
}

std::vector<std::string> names_of(std::span<const UserSettings> users) {
  std::vector<std::string> names = built_in_users();
  for (const UserSettings& user : users) names.push_back(user.name);
  const std::vector<std::string> registered = registered_users();
  names.insert(names.end(), registered.begin(), registered.end());
  return names;
}

[[noreturn]] void refuse_unknown(const std::string& name, std::span<const UserSettings> users) {
  const std::vector<std::string> names = names_of(users);
  throw_error<InvalidArgument>(
      "clicks.models: Unknown user '{}'. {} The users are {}; a [[user]] table defines another.", name,
      did_you_mean(name, names), joined(names));
}

void check_probabilities(const UserSettings& user, std::string_view key, std::span<const double> values) {
  for (const double value : values) {
    if (value >= 0.0 && value <= 1.0) continue;
    throw_error<InvalidArgument>("User '{}': the probabilities in '{}' must be between 0 and 1, not {}.",
                                 user.name, key, value);
  }
}

void refuse_key(const UserSettings& user, std::string_view key, ClickKind only) {
  throw_error<InvalidArgument>(
      "User '{0}' has kind \"{1}\", which does not use '{2}'. Remove it, or set kind = \"{3}\".", user.name,
      name_of(user.kind), key, name_of(only));
}

/// One probability for each of the click table's grades, or none at all.
void check_length(const UserSettings& user, std::string_view key, const std::vector<double>& values) {
  if (values.empty() || values.size() == user.click.size()) return;
  throw_error<InvalidArgument>(
      "User '{0}' has {1} click but {2} {3} probabilities. Give one of each for every grade, or leave out "
      "'{3}'.",
      user.name, user.click.size(), values.size(), key);
}

/// Rank r has r probabilities: 1, 3, 6, 10, … in all.
void check_browsing(const UserSettings& user) {
  std::size_t whole = 0;
  std::size_t ranks = 0;
  while (whole < user.browsing.size()) whole += ++ranks;
  if (whole != user.browsing.size()) {
    throw_error<InvalidArgument>(
        "User '{}' has {} probabilities in 'browsing', but rank r needs r of them: 1, 3, 6, 10 or more in "
        "all; {} ranks have {}.",
        user.name, user.browsing.size(), ranks, whole);
  }
  if (!user.browsing.empty() && !user.examination.empty())
    throw_error<InvalidArgument>("User '{}' has both 'browsing' and 'examination'. Remove one of them.",
                                 user.name);
}

/// A user who takes the behaviour of others has none of its own.
void check_changing(const UserSettings& user) {
  for (const auto& [key, values] : {std::pair{"click", &user.click},
                                    {"stop", &user.stop},
                                    {"examination", &user.examination},
                                    {"satisfaction", &user.satisfaction},
                                    {"browsing", &user.browsing}}) {
    if (values->empty()) continue;
    throw_error<InvalidArgument>(
        "User '{}' has kind \"changing\", which behaves as its 'intents' do: remove '{}'.", user.name, key);
  }
  if (user.intents.size() < 2)
    throw_error<InvalidArgument>("User '{}' needs at least two users in 'intents' to change between.",
                                 user.name);
  if (user.change_every < 1)
    throw_error<InvalidArgument>(
        "User '{}' needs 'change_every', the number of rounds until its intent changes.", user.name);
}

void check_user(const UserSettings& user) {
  if (user.kind == ClickKind::kChanging) return check_changing(user);
  if (!user.intents.empty()) refuse_key(user, "intents", ClickKind::kChanging);
  if (user.change_every != 0) refuse_key(user, "change_every", ClickKind::kChanging);
  if (user.click.empty()) {
    throw_error<InvalidArgument>(
        "User '{}' has no click probabilities. Set 'click' to one for each grade, starting at grade 0.",
        user.name);
  }
  check_probabilities(user, "click", user.click);
  check_probabilities(user, "stop", user.stop);
  check_probabilities(user, "examination", user.examination);
  check_probabilities(user, "satisfaction", user.satisfaction);
  check_probabilities(user, "browsing", user.browsing);
  check_probabilities(user, "noise", {&user.noise, 1});
  check_probabilities(user, "perseverance", {&user.perseverance, 1});
  if (!user.stop.empty() && user.kind != ClickKind::kDependent) {
    refuse_key(user, "stop", ClickKind::kDependent);
  }
  if (!user.examination.empty() && user.kind != ClickKind::kPosition &&
      user.kind != ClickKind::kUserBrowsing) {
    refuse_key(user, "examination", ClickKind::kPosition);
  }
  if (!user.satisfaction.empty() && user.kind != ClickKind::kDynamicBayesian) {
    refuse_key(user, "satisfaction", ClickKind::kDynamicBayesian);
  }
  if (!user.browsing.empty() && user.kind != ClickKind::kUserBrowsing) {
    refuse_key(user, "browsing", ClickKind::kUserBrowsing);
  }
  check_length(user, "stop", user.stop);
  check_length(user, "satisfaction", user.satisfaction);
  check_browsing(user);
}

/// The intents are users that do not change themselves.
void check_intents(const UserSettings& user, std::span<const UserSettings> users) {
  for (const std::string& name : user.intents) {
    if (is_built_in_user(name) || registered_user(name)) continue;
    const UserSettings* intent = find_user(users, name);
    if (intent == nullptr) {
      const std::vector<std::string> names = names_of(users);
      throw_error<InvalidArgument>("User '{}': Unknown user '{}' in 'intents'. {} The users are {}.",
                                   user.name, name, did_you_mean(name, names), joined(names));
    }
    if (intent->kind == ClickKind::kChanging)
      throw_error<InvalidArgument>(
          "User '{}' has '{}' in 'intents', a user of kind changing: list the intents of that user "
          "instead.",
          user.name, name);
  }
}

/// The grade of a built-in table for each grade of the data, or of the table.
std::vector<std::int64_t> mapped_grades(const std::string& user, const ClickSettings& clicks,
                                        int max_grade) {
  if (!clicks.grade_map.empty()) {
    if (max_grade < std::ssize(clicks.grade_map)) return clicks.grade_map;
    throw_error<InvalidArgument>(
        "The data has grade {}, but clicks.grade_map ends at grade {}. Give it {} grades of the tables.",
        max_grade, clicks.grade_map.size() - 1, max_grade + 1);
  }
  std::vector<std::int64_t> grades(table_grades(user, max_grade, clicks.grades));
  std::iota(grades.begin(), grades.end(), 0);
  return grades;
}

/// A built-in user: the defaults of [clicks] and its table.
UserSettings built_in_user(const std::string& name, const ClickSettings& clicks, int max_grade) {
  const std::vector<std::int64_t> grades = mapped_grades(name, clicks, max_grade);
  const auto largest = static_cast<int>(*std::max_element(grades.begin(), grades.end()));
  const ClickTable own = built_in_table(name, table_grades(name, largest, clicks.grades));
  ClickTable table;
  for (const std::int64_t grade : grades) {
    table.click.push_back(own.click[grade]);
    table.stop.push_back(own.stop[grade]);
  }
  UserSettings user = UserSettings::defaults(clicks);
  user.name = name;
  user.click = std::move(table.click);
  if (user.kind == ClickKind::kDependent) user.stop = std::move(table.stop);
  // A user who stops after a click is one whom the click has satisfied.
  if (user.kind == ClickKind::kDynamicBayesian) user.satisfaction = std::move(table.stop);
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
  check_intents(*user, users);
  if (user->kind != ClickKind::kChanging && max_grade >= std::ssize(user->click)) {
    throw_error<InvalidArgument>(
        "The data has grade {}, but the table of user '{}' ends at grade {}. Give it {} click "
        "probabilities.",
        max_grade, name, user->click.size() - 1, max_grade + 1);
  }
  return *user;
}

std::string describe_changing(const UserSettings& user, const ClickSettings& clicks,
                              std::span<const UserSettings> users, int max_grade) {
  std::vector<std::string> intents;
  for (const std::string& intent : user.intents)
    intents.push_back(describe_user(intent, clicks, users, max_grade));
  return fmt::format("{}: changes every {} rounds{}: {}", user.name, user.change_every,
                     user.repeat ? ", again and again" : "", fmt::join(intents, "; then "));
}

}  // namespace

void check_users(const ClickSettings& clicks, std::span<const UserSettings> users) {
  table_grades(built_in_users().front(), 0, clicks.grades);
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (is_built_in_user(users[i].name)) {
      throw_error<InvalidArgument>(
          "A [[user]] must not have the name of the built-in user '{}'. Choose another name.",
          users[i].name);
    }
    if (registered_user(users[i].name)) {
      throw_error<InvalidArgument>(
          "A [[user]] must not have the name of the registered user '{}'. Choose another name.",
          users[i].name);
    }
    if (find_user(users.first(i), users[i].name) != nullptr) {
      throw_error<InvalidArgument>("Two users are named '{}'. Give each [[user]] a unique name.",
                                   users[i].name);
    }
    check_user(users[i]);
    check_intents(users[i], users);
  }
  for (const std::string& name : clicks.models) {
    if (!is_built_in_user(name) && find_user(users, name) == nullptr && !registered_user(name))
      refuse_unknown(name, users);
  }
}

std::unique_ptr<ClickModel> make_user(const std::string& name, const ClickSettings& clicks,
                                      std::span<const UserSettings> users, int max_grade) {
  if (auto external = external_user(name, users))
    return std::make_unique<ExternalClickModel>(name, std::move(external->user));
  UserSettings user = resolved_user(name, clicks, users, max_grade);
  switch (user.kind) {
    case ClickKind::kDependent:
      return std::make_unique<ScanningUser>(
          ScanTable{std::move(user.click), std::move(user.stop), user.stop_draw}, user.noise);
    case ClickKind::kCascade:
      user.stop.assign(user.click.size(), 1.0);
      return std::make_unique<ScanningUser>(ScanTable{std::move(user.click), std::move(user.stop)},
                                            user.noise);
    case ClickKind::kDynamicBayesian:
      return std::make_unique<ScanningUser>(ScanTable{std::move(user.click), std::move(user.satisfaction),
                                                      StopDraw::kAfterClick, user.perseverance},
                                            user.noise);
    case ClickKind::kPosition:
    case ClickKind::kUserBrowsing:
      return std::make_unique<ExaminingUser>(
          std::move(user.click),
          ExaminationTable{std::move(user.browsing), std::move(user.examination), user.position_bias,
                           user.kind == ClickKind::kUserBrowsing},
          user.noise);
    case ClickKind::kChanging: {
      std::vector<std::unique_ptr<ClickModel>> intents;
      for (const std::string& intent : user.intents)
        intents.push_back(make_user(intent, clicks, users, max_grade));
      return std::make_unique<ChangingUser>(std::move(intents), user.change_every, user.repeat);
    }
  }
  throw_error<InvalidArgument>("User '{}' has an unknown kind.", name);
}

std::string describe_user(const std::string& name, const ClickSettings& clicks,
                          std::span<const UserSettings> users, int max_grade) {
  if (const auto external = external_user(name, users))
    return fmt::format("{}: registered, {}", name, external->description);
  const UserSettings user = resolved_user(name, clicks, users, max_grade);
  if (user.kind == ClickKind::kChanging) return describe_changing(user, clicks, users, max_grade);
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
    case ClickKind::kDynamicBayesian:
      text += user.satisfaction.empty()
                  ? ", never satisfied"
                  : fmt::format(", P(satisfied | grade) {}", fmt::join(user.satisfaction, " "));
      text += fmt::format(", perseverance {}", user.perseverance);
      break;
    case ClickKind::kUserBrowsing:
      text += !user.browsing.empty()
                  ? fmt::format(", P(examined) by rank and last click {}", fmt::join(user.browsing, " "))
              : !user.examination.empty()
                  ? fmt::format(", P(examined) by distance {}", fmt::join(user.examination, " "))
                  : fmt::format(", P(examined) 1/distance^{}", user.position_bias);
      break;
    case ClickKind::kChanging:
      break;
  }
  return text + (user.noise > 0.0 ? fmt::format(", noise {}", user.noise) : ", no noise");
}

}  // namespace olrank
