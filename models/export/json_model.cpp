#include <nlohmann/json.hpp>

#include "core/data/normaliser_text.h"
#include "models/export/export_format.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

/// Each float as its exact double value, so that readers in double lose nothing.
ordered_json numbers(const float* values, std::int64_t count) {
  auto array = ordered_json::array();
  for (std::int64_t i = 0; i < count; ++i) array.push_back(double{values[i]});
  return array;
}

ordered_json layers_of(const NetworkShape& shape, const std::vector<float>& theta) {
  auto layers = ordered_json::array();
  for (std::int64_t index = 0; index < shape.depth; ++index) {
    const NetworkLayer layer = shape.layer(index);
    auto weight = ordered_json::array();
    for (std::int64_t row = 0; row < layer.rows; ++row)
      weight.push_back(numbers(theta.data() + layer.weight + row * layer.columns, layer.columns));
    ordered_json entry = {{"weight", std::move(weight)}};
    if (layer.has_bias()) entry["bias"] = numbers(theta.data() + layer.bias, layer.rows);
    layers.push_back(std::move(entry));
  }
  return layers;
}

}  // namespace

std::string json_of(const LoadedModel& model) {
  const NetworkShape& shape = model.shape;
  ordered_json json = {{"format", "olrank-model"},
                       {"inputs", shape.inputs},
                       {"activation", "relu"},
                       {"output_scale", shape.output_scale},
                       {"normalisation", ordered_json::parse(normaliser_text(model.normaliser))}};
  if (model.is_additive()) json["cosines"] = model.normaliser.cosines;
  if (!model.normaliser.products.empty())
    json["products"] = ordered_json::parse(pairs_text(model.normaliser.products));
  const ModelMetadata metadata = complete_metadata(model);
  for (const auto& [key, text] : metadata) {
    if (key == "feature_names") json["feature_names"] = ordered_json::parse(text);
  }
  for (const auto& [key, text] : metadata) {
    if (key != "feature_names" && key != "normalisation" && key != "format" && key != "products")
      json["metadata"][key] = text;
  }
  for (const std::vector<float>& theta : model.members)
    json["members"].push_back({{"layers", layers_of(shape, theta)}});
  return json.dump() + "\n";
}

}  // namespace olrank
