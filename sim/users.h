#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/online/click_model.h"
#include "sim/click_settings.h"
#include "sim/user_settings.h"

namespace olrank {

/// Throws InvalidArgument for the first thing about users that no data could make right: a table that
/// contradicts itself or its kind, a name used twice, a model that nobody defined.
void check_users(const ClickSettings& clicks, std::span<const UserSettings> users);

/// The user called `name`, built-in or one of `users`, for data whose largest grade is `max_grade`. Throws
/// InvalidArgument for a name that nobody has, or a table that does not cover the grades.
std::unique_ptr<ClickModel> make_user(const std::string& name, const ClickSettings& clicks,
                                      std::span<const UserSettings> users, int max_grade);

/// The same user in one line, for people.
std::string describe_user(const std::string& name, const ClickSettings& clicks,
                          std::span<const UserSettings> users, int max_grade);

}  // namespace olrank
