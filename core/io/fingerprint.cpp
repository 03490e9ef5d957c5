#include "core/io/fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <nlohmann/json.hpp>

#include <new>
#include <sstream>

#include "core/io/json.h"
#include "core/throw_error.h"

namespace olrank {

void Fingerprinter::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

Fingerprinter::Fingerprinter() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Fingerprinter::add(const void* bytes, std::size_t size) {
  if (size > 0) XXH3_128bits_update(state_.get(), bytes, size);
}

Fingerprint Fingerprinter::value() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return Fingerprint{hash.high64, hash.low64};
}

Fingerprint fingerprint_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return Fingerprint{hash.high64, hash.low64};
}

std::string Fingerprint::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

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

}  // namespace

std::string recipe_difference(const Recipe& there, const Recipe& here) {
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

const std::string& text_of(const Recipe& recipe, std::string_view name) {
  static const std::string nothing;
  for (const auto& [known, text] : recipe) {
    if (known == name) return text;
  }
  return nothing;
}

std::string recipe_json(const Recipe& recipe) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, text] : recipe) json[name] = text;
  return json.dump();
}

Recipe parse_recipe(const std::string& json, const std::string& origin) {
  const auto parsed = try_parse_json(json);
  Recipe recipe;
  if (!parsed.is_object()) throw_error<IoError>("{}: The recipe is missing.", origin);
  for (const auto& [name, text] : parsed.items()) {
    if (!text.is_string()) throw_error<IoError>("{}: The recipe's '{}' is not a string.", origin, name);
    recipe.emplace_back(name, text.get<std::string>());
  }
  return recipe;
}

}  // namespace olrank
