#include "models/export/export_format.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/data/normaliser.h"
#include "core/io/containers.h"
#include "core/io/safetensors.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/modules/module_model.h"

namespace olrank {
ModelMetadata complete_metadata(const LoadedModel& model) {
  ModelMetadata metadata;
  std::copy_if(model.metadata.begin(), model.metadata.end(), std::back_inserter(metadata),
               [](const auto& entry) { return entry.first != kTorchScriptKey; });
  const auto add_missing = [&](const std::string& key, const std::string& text) {
    const bool there = std::any_of(metadata.begin(), metadata.end(),
                                   [&](const auto& entry) { return entry.first == key; });
    if (!there) metadata.emplace_back(key, text);
  };
  add_missing("normalisation", normaliser_text(model.normaliser));
  add_missing("feature_names", feature_names_text(plain_feature_names(model.normaliser.features)));
  return metadata;
}

std::string safetensors_of(const LoadedModel& model) {
  const auto tensors = tensors_of(model);
  std::vector<NamedTensor> views;
  views.reserve(tensors.size());
  for (const auto& tensor : tensors) views.push_back({tensor.name, tensor.shape, tensor.values});
  ModelMetadata metadata = complete_metadata(model);
  if (model.settings.module_file)
    metadata.emplace_back(kTorchScriptKey, base64_of(*model.settings.module_file));
  return checked_safetensors_bytes(views, std::move(metadata));
}

std::string exported(const LoadedModel& model, ExportFormat format, const std::string& name) {
  if (model.external || format != ExportFormat::kSafetensors)
    require_own_function(model, fmt::format("The format {}", name_of(format)));
  const bool layered = format == ExportFormat::kOnnx || format == ExportFormat::kC;
  const bool closed =
      format == ExportFormat::kJson || format == ExportFormat::kLtr || format == ExportFormat::kSolr;
  if (layered ? !has_exported_layers(model) : closed && !model.has_closed_form()) {
    throw_error<InvalidArgument>(
        "Module '{}' cannot be written as {}, which holds linear models, networks and the module{}: choose "
        "--to torchscript, or --to pt for its tensors alone.",
        model.settings.module, name_of(format),
        layered ? "s relu and residual, with activation = \"relu\"" : " relu");
  }
  if (format == ExportFormat::kTorchScript) throw InvalidArgument("This program writes no TorchScript.");
  if (format == ExportFormat::kSnapshot) throw InvalidArgument("A model alone has no memory of documents.");
  if (format == ExportFormat::kPt) return torch_archive_of(model);
  if (format == ExportFormat::kOnnx) return onnx_of(model);
  if (format == ExportFormat::kJson) return json_of(model);
  if (format == ExportFormat::kC) return c_source_of(model, name);
  if (format == ExportFormat::kLtr) return ltr_model_of(model, name);
  if (format == ExportFormat::kSolr) return solr_model_of(model, name);
  return safetensors_of(model);
}

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

/// Writes objects in Python's pickle format, protocol 2, as torch.save() would.
class Pickle {
 public:
  Pickle() { bytes_ += "\x80\x02"; }

  void text(std::string_view text) {
    bytes_ += 'X';
    little_endian(text.size());
    bytes_ += text;
  }
  void integer(std::int64_t value) {
    if (value >= 0 && value <= 0x7FFFFFFF) {
      bytes_ += 'J';
      little_endian(static_cast<std::uint64_t>(value));
      return;
    }
    bytes_ += "\x8A\x08";  // LONG1 of eight bytes
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
  void global(std::string_view module, std::string_view name) {
    bytes_ += fmt::format("c{}\n{}\n", module, name);
  }
  void mark() { bytes_ += '('; }
  void tuple() { bytes_ += 't'; }  // of everything since the mark
  void empty_tuple() { bytes_ += ')'; }
  void empty_dict() { bytes_ += '}'; }
  void set_items() { bytes_ += 'u'; }  // keys and values since the mark
  void call() { bytes_ += 'R'; }
  void set_state() { bytes_ += 'b'; }
  void persistent() { bytes_ += 'Q'; }
  void no() { bytes_ += "\x89"; }
  void ordered_dict() {
    global("collections", "OrderedDict");
    empty_tuple();
    call();
  }
  std::string finish() {
    bytes_ += '.';
    return std::move(bytes_);
  }

 private:
  void little_endian(std::uint64_t value, int bytes = 4) {
    for (int byte = 0; byte < bytes; ++byte) bytes_ += static_cast<char>(value >> (8 * byte) & 0xFFU);
  }

  std::string bytes_;
};

void put_tensor(Pickle& pickle, const ModelTensors::Tensor& tensor, std::size_t storage) {
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.mark();
  pickle.mark();
  pickle.text("storage");
  pickle.global("torch", "FloatStorage");
  pickle.text(fmt::format("{}", storage));
  pickle.text("cpu");
  pickle.integer(std::ssize(tensor.values));
  pickle.tuple();
  pickle.persistent();
  pickle.integer(0);  // where in its storage the tensor begins
  pickle.mark();
  for (const std::int64_t extent : tensor.shape) pickle.integer(extent);
  pickle.tuple();
  pickle.mark();
  std::int64_t stride = std::ssize(tensor.values);
  for (const std::int64_t extent : tensor.shape) pickle.integer(stride /= extent);
  pickle.tuple();
  pickle.no();  // no gradient
  pickle.ordered_dict();
  pickle.tuple();
  pickle.call();
}

std::string pickled(const std::vector<ModelTensors::Tensor>& tensors, const ModelMetadata& metadata) {
  Pickle pickle;
  pickle.ordered_dict();
  pickle.mark();
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    pickle.text(tensors[number].name);
    put_tensor(pickle, tensors[number], number);
  }
  pickle.set_items();
  pickle.empty_dict();  // the attributes
  pickle.mark();
  pickle.text("olrank");
  pickle.empty_dict();
  pickle.mark();
  for (const auto& [key, text] : metadata) {
    pickle.text(key);
    pickle.text(text);
  }
  pickle.set_items();
  pickle.set_items();
  pickle.set_state();
  return pickle.finish();
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

std::vector<double> of_columns(const FittedNormaliser& normaliser, const std::vector<double>& numbers) {
  std::vector<double> found;
  for (std::int64_t column = 0; column < normaliser.columns(); ++column)
    found.push_back(numbers[normaliser.kept.empty() ? column : normaliser.kept[column]]);
  return found;
}

ProductInputs product_inputs(std::span<const InputPair> products) {
  ProductInputs inputs;
  for (const InputPair pair : products) {
    inputs.first.push_back(pair.first);
    inputs.second.push_back(pair.second);
  }
  return inputs;
}

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

std::string torch_archive_of(const LoadedModel& model) {
  const auto tensors = tensors_of(model);
  StoredZip zip;
  zip.add("model/data.pkl", pickled(tensors, complete_metadata(model)));
  zip.add("model/byteorder", "little");
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    const std::vector<float>& values = tensors[number].values;
    zip.add(fmt::format("model/data/{}", number),
            {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  zip.add("model/version", "3\n");
  return zip.finish();
}

}  // namespace olrank
