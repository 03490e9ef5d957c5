#include "models/export/exported_layers.h"

#include <fmt/format.h>

#include "models/modules/module_model.h"

namespace olrank {
namespace {

/// The layer whose tensors have this name.
ExportedLayer layer_named(const std::string& name, const ModelTensors& model) {
  ExportedLayer layer{name, {}};
  std::int64_t place = 0;
  for (const auto& tensor : model.tensors) {
    if (tensor.name == name + ".weight") {
      layer.place.rows = tensor.shape[0];
      layer.place.columns = tensor.shape[1];
      layer.place.weight = place;
    }
    if (tensor.name == name + ".bias") layer.place.bias = place;
    place += std::ssize(tensor.values);
  }
  return layer;
}

}  // namespace

bool has_residual_blocks(const LoadedModel& model) {
  return model.module && model.settings.module == "residual";
}

bool has_exported_layers(const LoadedModel& model) {
  return model.has_closed_form() ||
         (has_residual_blocks(model) && model.settings.activation == Activation::kRelu);
}

std::vector<ExportedLayer> exported_layers(const LoadedModel& model) {
  std::vector<ExportedLayer> layers;
  if (!has_residual_blocks(model)) {
    for (std::int64_t index = 0; index < model.shape.depth; ++index)
      layers.push_back({fmt::format("layers.{}", index), model.shape.layer(index)});
    return layers;
  }
  const ModelTensors tensors = model.module->tensors(model.members.front());
  layers.push_back(layer_named("input", tensors));
  for (std::int64_t block = 0; block + 1 < model.settings.depth; ++block) {
    layers.push_back(layer_named(fmt::format("first.{}", block), tensors));
    layers.push_back(layer_named(fmt::format("second.{}", block), tensors));
  }
  layers.push_back(layer_named("output", tensors));
  return layers;
}

}  // namespace olrank
