#include "core/data/normaliser_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& origin, const std::string& what) {
  throw DataError(origin, 0, 0, fmt::format("The model's normalisation cannot be read: {}.", what));
}

template <class T>
std::vector<T> list_of(const ordered_json& json, const char* key, const std::string& origin) {
  std::vector<T> values;
  const auto found = json.find(key);
  if (found == json.end()) return values;
  if (!found->is_array()) refuse(origin, fmt::format("'{}' is no list", key));
  for (const auto& value : *found) {
    if (!value.is_number()) refuse(origin, fmt::format("'{}' holds what is no number", key));
    values.push_back(value.get<T>());
  }
  return values;
}

void check(const FittedNormaliser& normaliser, const std::string& origin) {
  const auto features = static_cast<std::size_t>(normaliser.features);
  const bool fitted =
      normaliser.kind == Normalisation::kZscore || normaliser.kind == Normalisation::kLog1pZscore;
  const std::size_t expected = fitted ? features : 0;
  if (normaliser.means.size() != expected || normaliser.scales.size() != expected) {
    refuse(origin, fmt::format("it needs {} means and scales and has {} and {}", expected,
                               normaliser.means.size(), normaliser.scales.size()));
  }
  for (std::size_t i = 0; i < expected; ++i) {
    if (!std::isfinite(normaliser.means[i]) || !std::isfinite(normaliser.scales[i]))
      refuse(origin, fmt::format("mean or scale of feature {} is not finite", i + 1));
  }
  std::int64_t before = -1;
  for (const std::int64_t kept : normaliser.kept) {
    if (kept <= before || kept >= normaliser.features)
      refuse(origin, "'kept' does not rise within the features");
    before = kept;
  }
}

}  // namespace

std::string normaliser_json(const FittedNormaliser& normaliser) {
  ordered_json json = {{"kind", name_of(normaliser.kind)}, {"features", normaliser.features}};
  if (!normaliser.kept.empty()) json["kept"] = normaliser.kept;
  if (!normaliser.means.empty()) json["means"] = normaliser.means;
  if (!normaliser.scales.empty()) json["scales"] = normaliser.scales;
  return json.dump();
}

FittedNormaliser parse_normaliser(std::string_view json, const std::string& origin) {
  const ordered_json parsed = ordered_json::parse(json.begin(), json.end(), nullptr, false);
  if (!parsed.is_object()) refuse(origin, "it is no JSON object");
  const auto kind = parsed.find("kind");
  const auto features = parsed.find("features");
  if (kind == parsed.end() || !kind->is_string()) refuse(origin, "it has no 'kind'");
  if (features == parsed.end() || !features->is_number_integer() || features->get<std::int64_t>() < 1)
    refuse(origin, "it has no number of 'features'");
  const auto known = value_named<Normalisation>(kind->get<std::string>());
  if (!known) refuse(origin, fmt::format("'{}' is no kind of it", kind->get<std::string>()));
  FittedNormaliser normaliser;
  normaliser.kind = *known;
  normaliser.features = features->get<std::int64_t>();
  normaliser.kept = list_of<std::int64_t>(parsed, "kept", origin);
  normaliser.means = list_of<double>(parsed, "means", origin);
  normaliser.scales = list_of<double>(parsed, "scales", origin);
  check(normaliser, origin);
  return normaliser;
}

}  // namespace olrank
