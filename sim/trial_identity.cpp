#include "sim/trial_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"
#include "core/io/json.h"

namespace olrank {
namespace {

/// The first lines in which two texts differ.
std::pair<std::string, std::string> first_difference(const std::string& there, const std::string& here) {
  std::istringstream lines_there(there);
  std::istringstream lines_here(here);
  std::string a;
  std::string b;
  do {
    a.clear();
    b.clear();
    std::getline(lines_there, a);
    std::getline(lines_here, b);
  } while (a == b && (lines_there || lines_here));
  return {a, b};
}

constexpr std::string_view kProtocol = "protocol";
constexpr std::string_view kRounds = "rounds = ";

/// Begin and size of the protocol's line of rounds, without its newline; of size 0 without one.
std::pair<std::size_t, std::size_t> rounds_line(const std::string& protocol) {
  std::size_t begin = 0;
  while (begin < protocol.size()) {
    const std::size_t end = std::min(protocol.find('\n', begin), protocol.size());
    if (std::string_view(protocol).substr(begin).starts_with(kRounds)) return {begin, end - begin};
    begin = end + 1;
  }
  return {protocol.size(), 0};
}

/// "fold3" with prefix "fold" is 3.
std::optional<std::int64_t> numbered(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + prefix.size(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

std::filesystem::path TrialIdentity::path() const {
  return std::filesystem::path("trials") / ranker / user / fmt::format("fold{}", fold) /
         fmt::format("seed{}", seed);
}

std::optional<TrialIdentity> identity_of(const std::filesystem::path& path) {
  const std::vector<std::string> parts(path.begin(), path.end());
  if (parts.size() != 5) return std::nullopt;
  const auto fold = numbered(parts[3], "fold");
  const auto seed = numbered(parts[4], "seed");
  if (!fold || !seed) return std::nullopt;
  TrialIdentity identity{parts[1], parts[2], *fold, *seed};
  // Whatever is not written as path() writes it is not a trial's folder: "..", "fold007".
  const bool leaves = parts[1] == ".." || parts[2] == ".." || parts[1] == "." || parts[2] == ".";
  if (leaves || identity.path() != path) return std::nullopt;
  return identity;
}

std::string recipe_difference(const TrialRecipe& there, const TrialRecipe& here) {
  for (std::size_t i = 0; i < here.size(); ++i) {
    const auto& [name, text] = here[i];
    const bool known = i < there.size() && there[i].first == name;
    if (known && there[i].second == text) continue;
    const auto [a, b] = first_difference(known ? there[i].second : "", text);
    return fmt::format("the {}: '{}' there, '{}' here", name, a, b);
  }
  if (there.size() > here.size())
    return fmt::format("the {}, which is missing here", there[here.size()].first);
  return {};
}

const std::string& text_of(const TrialRecipe& recipe, std::string_view name) {
  static const std::string nothing;
  for (const auto& [known, text] : recipe) {
    if (known == name) return text;
  }
  return nothing;
}

std::int64_t rounds_of(const TrialRecipe& recipe) {
  const std::string& protocol = text_of(recipe, kProtocol);
  const auto [begin, size] = rounds_line(protocol);
  if (size == 0) return 0;
  return numbered(protocol.substr(begin, size), kRounds).value_or(0);
}

TrialRecipe without_rounds(TrialRecipe recipe) {
  for (auto& [name, text] : recipe) {
    if (name != kProtocol) continue;
    const auto [begin, size] = rounds_line(text);
    text.erase(begin, size);
  }
  return recipe;
}

std::string recipe_json(const TrialRecipe& recipe) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, text] : recipe) json[name] = text;
  return json.dump();
}

TrialRecipe parse_recipe(const std::string& json, const std::string& origin) {
  const auto parsed = try_parse_json(json);
  TrialRecipe recipe;
  if (!parsed.is_object()) throw IoError(fmt::format("{}: The trial's recipe is missing.", origin));
  for (const auto& [name, text] : parsed.items()) {
    if (!text.is_string())
      throw IoError(fmt::format("{}: The recipe's '{}' is not a string.", origin, name));
    recipe.emplace_back(name, text.get<std::string>());
  }
  return recipe;
}

}  // namespace olrank
