#include "core/data/normaliser.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/json.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {

using nlohmann::ordered_json;

std::string normaliser_text(const FittedNormaliser& normaliser) {
  ordered_json json = {{"kind", name_of(normaliser.kind)}, {"features", normaliser.features}};
  if (!normaliser.kept.empty()) json["kept"] = normaliser.kept;
  if (!normaliser.means.empty()) json["means"] = normaliser.means;
  if (!normaliser.scales.empty()) json["scales"] = normaliser.scales;
  return json.dump();
}

FittedNormaliser parse_normaliser(const std::string& text, const std::string& origin) {
  const ordered_json json = try_parse_json(text);
  const auto require = [&](bool holds, std::string_view sentence) {
    if (!holds) throw_data_error(origin, 0, 0, "Its normalisation is invalid. {}", sentence);
  };
  require(json.is_object(), "It is not a JSON object.");
  FittedNormaliser normaliser;
  const auto kind = json.find("kind");
  require(kind != json.end() && kind->is_string(), "Its 'kind' is missing or not a string.");
  const auto known = value_named<Normalisation>(kind->get<std::string>());
  require(known.has_value(), fmt::format("Its kind '{}' is unknown.", kind->get<std::string>()));
  normaliser.kind = *known;
  const auto features = json.find("features");
  require(features != json.end() && features->is_number_unsigned() && features->get<std::uint64_t>() >= 1 &&
              features->get<std::uint64_t>() <= 4'294'967'295U,
          "Its 'features' is missing or not a valid number of features.");
  normaliser.features = features->get<std::int64_t>();
  if (const auto found = json.find("kept"); found != json.end()) {
    constexpr std::string_view kSentence =
        "Its 'kept' must be a non-empty array of increasing feature indices.";
    require(found->is_array() && !found->empty(), kSentence);
    for (const ordered_json& index : *found) {
      require(index.is_number_unsigned() && index < *features, kSentence);
      require(normaliser.kept.empty() || index.get<std::int64_t>() > normaliser.kept.back(), kSentence);
      normaliser.kept.push_back(index.get<std::int64_t>());
    }
  }
  const auto numbers = [&](const char* name) {
    const bool zscore = *known == Normalisation::kZscore || *known == Normalisation::kLog1pZscore;
    const std::int64_t count = zscore ? normaliser.features : 0;
    std::vector<double> values;
    const auto found = json.find(name);
    const std::string sentence = fmt::format("Its '{}' must be {} finite numbers.", name, count);
    if (found != json.end()) {
      require(found->is_array(), sentence);
      for (const ordered_json& number : *found) {
        require(number.is_number() && std::isfinite(number.get<double>()), sentence);
        values.push_back(number.get<double>());
      }
    }
    require(std::ssize(values) == count, sentence);
    return values;
  };
  normaliser.means = numbers("means");
  normaliser.scales = numbers("scales");
  return normaliser;
}

std::vector<std::string> plain_feature_names(std::int64_t features) {
  std::vector<std::string> names;
  for (std::int64_t feature = 1; feature <= features; ++feature)
    names.push_back(fmt::format("f{}", feature));
  return names;
}

std::string feature_names_text(const std::vector<std::string>& names) {
  return nlohmann::ordered_json(names).dump();
}

std::vector<std::string> parse_feature_names(const std::string& text) {
  std::vector<std::string> names;
  const auto json = try_parse_json(text);
  if (!json.is_array()) return names;
  for (const auto& name : json) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::string feature_names_beside(const std::string& file, std::int64_t features) {
  const std::string beside = file + ".names";
  if (file.empty() || !std::filesystem::is_regular_file(beside))
    return feature_names_text(plain_feature_names(features));
  const std::vector<std::string> names = parse_feature_names(read_file(beside));
  require_feature_names(names, features, beside);
  return feature_names_text(names);
}

void require_feature_names(const std::vector<std::string>& names, std::int64_t features,
                           const std::string& origin) {
  if (std::ssize(names) != features)
    throw_error<InvalidArgument>("{}: {} for the {} of the model.", origin,
                                 counted(std::ssize(names), "name"), counted(features, "feature"));
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty()) throw_error<InvalidArgument>("{}: A name of a feature is empty.", origin);
    if (!seen.insert(name).second)
      throw_error<InvalidArgument>("{}: Two features have the name '{}'.", origin, name);
  }
}

}  // namespace olrank
