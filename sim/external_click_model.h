#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/online/click_model.h"
#include "sim/external_user.h"

namespace olrank {

/// A user that a program has registered.
struct RegisteredUser {
  std::string description;
  std::shared_ptr<const ExternalUser> user;
};

/// None if no user has this name.
std::optional<RegisteredUser> registered_user(const std::string& name);
/// In alphabetical order.
std::vector<std::string> registered_users();

/// A registered user as trials see it. Throws InvalidArgument for clicks that are not 0 or 1, or not one
/// for each shown document.
class ExternalClickModel : public ClickModel {
 public:
  ExternalClickModel(std::string name, std::shared_ptr<const ExternalUser> user);

  void click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key, std::uint32_t round,
             ClickLog& log) const override;

 private:
  std::string name_;
  std::shared_ptr<const ExternalUser> user_;
};

}  // namespace olrank
