#include "models/baselines/external_ranker.h"

#include <map>
#include <mutex>
#include <utility>

#include "core/throw_error.h"
#include "models/baselines/external_adapter.h"

namespace olrank {
namespace {

struct RankerRegistry {
  std::mutex mutex;
  std::map<std::string, RegisteredRanker> rankers;
};

RankerRegistry& ranker_registry() {
  static RankerRegistry registry;
  return registry;
}

}  // namespace

void register_ranker(const std::string& name, const std::string& description,
                     ExternalRankerFactory factory) {
  if (name.empty()) throw InvalidArgument("A registered ranker needs a name that is not empty.");
  if (description.empty() || description.find('\n') != std::string::npos) {
    throw_error<InvalidArgument>(
        "The description of ranker '{}' must be one line: name the ranker, its version and its parameters.",
        name);
  }
  if (!factory)
    throw_error<InvalidArgument>("The factory of ranker '{}' is empty: register a function.", name);
  RankerRegistry& registry = ranker_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  if (!registry.rankers.emplace(name, RegisteredRanker{description, std::move(factory)}).second) {
    throw_error<InvalidArgument>(
        "There is a registered ranker '{}' already: choose another name, or unregister it.", name);
  }
}

void unregister_ranker(const std::string& name) {
  RegisteredRanker last;  // ends without the lock, in case its destructor registers or unregisters
  RankerRegistry& registry = ranker_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.rankers.find(name);
  if (found == registry.rankers.end()) return;
  last = std::move(found->second);
  registry.rankers.erase(found);
}

RegisteredRanker registered_ranker(const std::string& named, const std::string& own) {
  const std::size_t open = own.find('(');
  if (open != std::string::npos && own.back() != ')')
    throw_error<InvalidArgument>("Ranker '{}' has own = \"{}\": write NAME or NAME(PARAMETERS).", named,
                                 own);
  const std::string name = own.empty() ? named : own.substr(0, open);
  RankerRegistry& registry = ranker_registry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto found = registry.rankers.find(name);
  if (found == registry.rankers.end()) {
    throw_error<InvalidArgument>(
        "No ranker named '{}' is registered: kind 'external' is for programs that bring rankers of their "
        "own.",
        name);
  }
  RegisteredRanker ranker = found->second;
  if (open != std::string::npos) ranker.parameters = own.substr(open + 1, own.size() - open - 2);
  return ranker;
}

}  // namespace olrank
