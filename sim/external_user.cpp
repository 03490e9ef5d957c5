#include "sim/external_user.h"

#include <map>
#include <mutex>
#include <utility>

#include "core/io/folder.h"
#include "core/throw_error.h"
#include "sim/click_coins.h"

namespace olrank {
namespace {

struct UserRegistry {
  std::mutex mutex;
  std::map<std::string, RegisteredUser> users;
};

UserRegistry& user_registry() {
  static UserRegistry registry;
  return registry;
}

}  // namespace

double UserCoins::uniform(std::int32_t doc, UserDecision decision) const {
  return ClickCoins({{key_[0], key_[1]}}, round_, doc).draw(static_cast<std::uint32_t>(decision));
}

double UserCoins::own(std::int32_t doc, std::uint32_t number) const {
  constexpr std::uint32_t kFirst = 1U << 31;  // leaves room for decisions of built-in users
  return ClickCoins({{key_[0], key_[1]}}, round_, doc).draw(kFirst | number);
}

void register_user(const std::string& name, const std::string& description,
                   std::shared_ptr<const ExternalUser> user) {
  if (!is_folder_name(name)) {
    throw_error<InvalidArgument>(
        "A user cannot be named '{}': its trials have a folder of that name, so use letters, digits and - "
        "_ . + =, without a leading dot.",
        name);
  }
  if (is_built_in_user(name))
    throw_error<InvalidArgument>("The user '{}' is built in: choose another name.", name);
  if (description.empty() || description.find('\n') != std::string::npos) {
    throw_error<InvalidArgument>(
        "The description of user '{}' must be one line: name the user, its version and its parameters.",
        name);
  }
  if (user == nullptr)
    throw_error<InvalidArgument>("The user '{}' is a null pointer: register an object.", name);
  UserRegistry& registry = user_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  if (!registry.users.emplace(name, RegisteredUser{description, std::move(user)}).second) {
    throw_error<InvalidArgument>(
        "There is a registered user '{}' already: choose another name, or unregister it.", name);
  }
}

void unregister_user(const std::string& name) {
  RegisteredUser last;  // ends without the lock, in case its destructor registers or unregisters
  UserRegistry& registry = user_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.users.find(name);
  if (found == registry.users.end()) return;
  last = std::move(found->second);
  registry.users.erase(found);
}

std::optional<RegisteredUser> registered_user(const std::string& name) {
  UserRegistry& registry = user_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.users.find(name);
  if (found == registry.users.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> registered_users() {
  UserRegistry& registry = user_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, user] : registry.users) names.push_back(name);
  return names;
}

}  // namespace olrank
