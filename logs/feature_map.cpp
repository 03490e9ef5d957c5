#include "logs/feature_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/data/normaliser_text.h"
#include "core/text/message_text.h"

namespace olrank {

std::string NamedInputs::present_name(const std::string& name) const {
  for (const auto& [before, now] : renamed) {
    if (before == name) return now;
  }
  return name;
}

bool NamedInputs::drops(const std::string& name) const {
  return std::any_of(dropped.begin(), dropped.end(), [&name](const std::string& one) {
    return name.starts_with(one) &&
           (name.size() == one.size() || name[one.size()] == '=' || name[one.size()] == '[');
  });
}

std::vector<std::string> telling_names(const std::vector<std::string>& names) {
  const bool has_number = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  });
  return has_number || names == plain_feature_names(std::ssize(names)) ? std::vector<std::string>() : names;
}

std::vector<std::string> names_of_inputs(const std::vector<std::string>& features,
                                         const FittedNormaliser& normaliser) {
  if (features.empty() || normaliser.kept.empty()) return features;
  std::vector<std::string> names;
  for (const std::int64_t feature : normaliser.kept) names.push_back(features[feature]);
  return names;
}

FeatureMap::FeatureMap(NamedInputs inputs) : inputs_(std::move(inputs)) {
  if (!inputs_.names.empty()) text_ = feature_names_text(inputs_.names);
  inputs_.defaults.resize(inputs_.names.size());
}

std::string FeatureMap::apply(FeedbackRecord& record) {
  if (text_.empty() || record.inputs.empty()) return {};
  if (record.feature_names.empty() && !inputs_.unnamed.empty())
    record.feature_names = feature_names_text(inputs_.unnamed);
  if (record.feature_names.empty()) {
    if (record.columns == std::ssize(inputs_.names)) record.feature_names = text_;
    return {};
  }
  if (record.feature_names == text_ && record.columns == std::ssize(inputs_.names)) return {};
  if (record.feature_names != latest_) {
    latest_.clear();
    if (std::string wrong = find_places(record); !wrong.empty()) return wrong;
    latest_ = record.feature_names;
  }
  if (record.columns != given_)
    return fmt::format("The list has {} per document and {} in 'feature_names'.",
                       counted(record.columns, "input"), counted(given_, "name"));
  const std::int64_t width = std::ssize(places_);
  std::vector<float> mapped(record.docs.size() * width);
  for (std::int64_t doc = 0; doc < std::ssize(record.docs); ++doc) {
    const float* given = record.inputs.data() + doc * record.columns;
    for (std::int64_t input = 0; input < width; ++input)
      mapped[doc * width + input] = places_[input] < 0 ? inputs_.defaults[input] : given[places_[input]];
  }
  record.inputs = std::move(mapped);
  record.columns = width;
  record.feature_names = text_;
  return {};
}

std::string FeatureMap::find_places(const FeedbackRecord& record) {
  const std::vector<std::string> given = parse_feature_names(record.feature_names);
  given_ = std::ssize(given);
  std::unordered_map<std::string, std::int64_t> known;
  for (const std::string& name : inputs_.names) known.emplace(name, std::ssize(known));
  places_.assign(inputs_.names.size(), -1);
  for (std::int64_t place = 0; place < std::ssize(given); ++place) {
    const auto found = known.find(inputs_.present_name(given[place]));
    if (found == known.end()) {
      if (inputs_.drops(given[place])) continue;
      return fmt::format("The list has the feature '{}', which the model lacks: {}.", excerpt(given[place]),
                         inputs_.advice);
    }
    if (places_[found->second] >= 0)
      return fmt::format("The list has the feature '{}' twice.", excerpt(found->first));
    places_[found->second] = place;
  }
  return {};
}

}  // namespace olrank
