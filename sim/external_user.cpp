#include "sim/external_user.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/io/folder.h"
#include "core/online/online_ranker.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "sim/click_models.h"

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

namespace {

/// The dependent click model's users in the online learning-to-rank literature.
const std::vector<std::pair<std::string_view, ClickTable>>& tables() {
  static const std::vector<std::pair<std::string_view, ClickTable>> tables = {
      {"perfect", {{0.0, 1.0}, {0.0, 0.0}}},
      {"perfect", {{0.0, 0.5, 1.0}, {0.0, 0.0, 0.0}}},
      {"perfect", {{0.0, 0.2, 0.4, 0.8, 1.0}, {0.0, 0.0, 0.0, 0.0, 0.0}}},
      {"navigational", {{0.05, 0.95}, {0.2, 0.9}}},
      {"navigational", {{0.05, 0.5, 0.95}, {0.2, 0.5, 0.9}}},
      {"navigational", {{0.05, 0.3, 0.5, 0.7, 0.95}, {0.2, 0.3, 0.5, 0.7, 0.9}}},
      {"informational", {{0.4, 0.9}, {0.1, 0.5}}},
      {"informational", {{0.4, 0.7, 0.9}, {0.1, 0.3, 0.5}}},
      {"informational", {{0.4, 0.6, 0.7, 0.8, 0.9}, {0.1, 0.2, 0.3, 0.4, 0.5}}},
  };
  return tables;
}

constexpr std::array kTableSizes = {2, 3, 5};

}  // namespace

const std::vector<std::string>& built_in_users() {
  static const std::vector<std::string> users = {"perfect", "navigational", "informational"};
  return users;
}

bool is_built_in_user(std::string_view name) {
  const auto& users = built_in_users();
  return std::find(users.begin(), users.end(), name) != users.end();
}

int table_grades(std::string_view user, int max_grade, std::int64_t stated) {
  if (stated != 0) {
    if (std::find(kTableSizes.begin(), kTableSizes.end(), stated) == kTableSizes.end()) {
      throw_error<InvalidArgument>(
          "clicks.grades must be 2, 3 or 5, or 0 to follow the data's largest grade, not {}.", stated);
    }
    if (max_grade >= stated) {
      throw_error<InvalidArgument>(
          "The data has grade {}, but with clicks.grades = {} the table of the built-in user '{}' ends at "
          "grade {}. Raise clicks.grades, or define a [[user]] with {} click probabilities.",
          max_grade, stated, user, stated - 1, max_grade + 1);
    }
    return static_cast<int>(stated);
  }
  for (const int grades : kTableSizes) {
    if (max_grade < grades) return grades;
  }
  throw_error<InvalidArgument>(
      "The data has grade {}, but the tables of the built-in user '{}' end at grade {}. Define a [[user]] "
      "with {} click probabilities.",
      max_grade, user, kTableSizes.back() - 1, max_grade + 1);
}

ClickTable built_in_table(std::string_view user, int grades) {
  for (const auto& [name, table] : tables()) {
    if (name == user && std::ssize(table.click) == grades) return table;
  }
  throw_error<InvalidArgument>(
      "There is no built-in table of {} grades for '{}'. The built-in users are {}, with tables for 2, 3 "
      "and 5 grades.",
      grades, user, joined(built_in_users()));
}

ExternalClickModel::ExternalClickModel(std::string name, std::shared_ptr<const ExternalUser> user)
    : name_(std::move(name)), user_(std::move(user)) {}

std::int64_t ExternalClickModel::person(PhiloxKey key, std::uint32_t round) const {
  constexpr std::uint32_t kWho = (1U << 31) - 1;  // the number of a coin that users hardly reach
  const auto people = static_cast<double>(user_->people());
  return static_cast<std::int64_t>(UserCoins({key.word[0], key.word[1]}, round).own(0, kWho) * people);
}

void ExternalClickModel::click(QueryGrades grades, std::span<const std::int32_t> shown, PhiloxKey key,
                               std::uint32_t round, ClickLog& log) const {
  log.examined.assign(shown.size(), 1);
  ShownToUser list{round, grades.of_doc, shown, UserCoins({key.word[0], key.word[1]}, round)};
  list.examined = log.examined;
  list.person = person(key, round);
  if (const QueryDocs* docs = grades.docs) {
    list.query = docs->query;
    list.qid = docs->qid();
    list.ids = docs->ids();
    list.features = docs->features.features;
    if (!docs->features.is_sparse())
      list.inputs = {docs->features.values, static_cast<std::size_t>(docs->docs() * list.features)};
  }
  log.clicks = user_->click(list);
  if (log.clicks.size() != shown.size()) {
    throw_error<InvalidArgument>(
        "User '{}' returned {} clicks in round {}, but was shown {} documents: return 0 or 1 for each.",
        name_, log.clicks.size(), round, shown.size());
  }
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    if (log.clicks[rank] > 1) {
      throw_error<InvalidArgument>(
          "User '{}' returned {} for document {} in round {}: return 1 for a click and 0 for no click.",
          name_, log.clicks[rank], shown[rank], round);
    }
    if (log.examined[rank] > 1 || log.examined[rank] < log.clicks[rank]) {
      throw_error<InvalidArgument>(
          "User '{}' examined rank {} by {} in round {}: it is 0 or 1, and 1 where there is a click.",
          name_, rank + 1, log.examined[rank], round);
    }
  }
}

}  // namespace olrank
