#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/online/click_model.h"
#include "sim/trial_settings.h"

namespace olrank {

/// Throws InvalidArgument for the first error that is independent of the data: a table that contradicts
/// itself or its kind, a duplicate name, an undefined model.
void check_users(const ClickSettings& clicks, std::span<const UserSettings> users);

/// The user named `name`, built-in, one of `users` or one that the program has registered
/// (sim/external_user.h), for data whose largest grade is `max_grade`. Throws InvalidArgument for an
/// unknown name, or a table that does not cover the grades.
std::unique_ptr<ClickModel> make_user(const std::string& name, const ClickSettings& clicks,
                                      std::span<const UserSettings> users, int max_grade);

/// A one-line description of the same user.
std::string describe_user(const std::string& name, const ClickSettings& clicks,
                          std::span<const UserSettings> users, int max_grade);

}  // namespace olrank
