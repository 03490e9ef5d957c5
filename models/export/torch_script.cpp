#include "models/export/export_format.h"

#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <span>
#include <sstream>

#include "core/io/json.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

using torch::jit::Module;

/// The inputs of the network from the raw features `docs`, rounded to floats on the way as the program
/// does.
std::string normalisation_code(const FittedNormaliser& normaliser, Module& module) {
  std::string code;
  if (!normaliser.kept.empty()) {
    module.register_buffer("kept", torch::tensor(normaliser.kept, torch::kLong));
    code += "  units = torch.index_select(units, 1, self.kept)\n";
  }
  code += "  units = units.double()\n";
  constexpr std::string_view kRounded = "  units = units.float().double()\n";
  const bool is_log = normaliser.kind == Normalisation::kLog1pZscore;
  if (is_log) code += "  units = torch.sign(units) * torch.log1p(torch.abs(units))\n";
  if (is_log || normaliser.kind == Normalisation::kZscore) {
    module.register_buffer("means",
                           torch::tensor(of_columns(normaliser, normaliser.means), torch::kDouble));
    module.register_buffer("scales",
                           torch::tensor(of_columns(normaliser, normaliser.scales), torch::kDouble));
    code += "  units = (units - self.means) * self.scales\n";
    code += kRounded;
  }
  if (normaliser.scales_queries()) {
    code +=
        "  if units.size(0) > 0:\n"
        "    low = torch.amin(units, [0])\n"
        "    reach = torch.amax(units, [0]) - low\n"
        "    units = (units - low) / torch.where(reach > 0.0, reach, torch.ones_like(reach))\n";
    code += kRounded;
  }
  if (normaliser.cosines > 0) {
    std::string blocks = "units";
    for (std::int64_t k = 2; k < 2 + normaliser.cosines; ++k)
      blocks += fmt::format(", torch.cos(units * {:.17g})", static_cast<double>(k) * std::numbers::pi);
    if (!normaliser.products.empty()) {
      const auto [first, second] = product_inputs(normaliser.products);
      module.register_buffer("first", torch::tensor(first, torch::kLong));
      module.register_buffer("second", torch::tensor(second, torch::kLong));
      blocks +=
          ", (2.0 * torch.index_select(units, 1, self.first) - 1.0) * "
          "(2.0 * torch.index_select(units, 1, self.second) - 1.0)";
    }
    code += fmt::format("  units = torch.cat([{}], 1)\n{}", blocks, kRounded);
  }
  return code;
}

torch::Tensor values_of(const ModelTensors::Tensor& tensor) {
  return torch::from_blob(const_cast<float*>(tensor.values.data()), tensor.shape, torch::kFloat).clone();
}

/// A layer of weights and perhaps biases: those of `tensors` whose names begin with `prefix`.
Module layer_module(const std::string& prefix, const std::vector<ModelTensors::Tensor>& tensors) {
  Module layer("__torch__.olrank.Layer");
  std::string code =
      "def forward(self, units: Tensor) -> Tensor:\n"
      "  units = torch.matmul(units, self.weight.double().t())\n";
  for (const auto& tensor : tensors) {
    if (!tensor.name.starts_with(prefix + ".")) continue;
    const std::string name = tensor.name.substr(prefix.size() + 1);
    layer.register_parameter(name, values_of(tensor), false);
    if (name == "bias") code += "  units = units + self.bias.double()\n";
  }
  layer.define(code + "  return units\n");
  return layer;
}

/// A normalisation of m units: LayerNorm of LibTorch, with its constant.
Module norm_module(const std::string& prefix, const std::vector<ModelTensors::Tensor>& tensors) {
  Module norm("__torch__.olrank.Norm");
  for (const auto& tensor : tensors) {
    if (tensor.name.starts_with(prefix + "."))
      norm.register_parameter(tensor.name.substr(prefix.size() + 1), values_of(tensor), false);
  }
  norm.define(
      "def forward(self, units: Tensor) -> Tensor:\n"
      "  return torch.layer_norm(units, [units.size(1)], self.weight.double(), self.bias.double(), "
      "1e-05)\n");
  return norm;
}

/// Adds layers prefix.0, prefix.1, … of the module `name` as a list.
template <class MakeLayer>
void add_layers(Module& module, const std::string& name, const std::string& prefix, std::int64_t count,
                const std::vector<ModelTensors::Tensor>& tensors, const MakeLayer& make) {
  Module list("__torch__.olrank.Layers");
  for (std::int64_t index = 0; index < count; ++index)
    list.register_module(std::to_string(index), make(fmt::format("{}{}.{}", prefix, name, index), tensors));
  module.register_module(name, list);
}

/// The code of layer `index` of a list of layers, applied to `units`.
std::string applied(const std::string& list, std::int64_t index, const std::string& units) {
  return fmt::format("getattr(self.{}, \"{}\").forward({})", list, index, units);
}

/// Adds a built-in module, and returns its code, as add_network() does. It follows the forward() of the
/// module's class.
std::string add_built_in(Module& module, const LoadedModel& model,
                         const std::vector<ModelTensors::Tensor>& tensors, const std::string& prefix) {
  const NetworkSettings& settings = model.settings;
  const auto add_layer = [&](const std::string& name) {
    module.register_module(name, layer_module(prefix + name, tensors));
  };
  const auto add_list = [&](const std::string& name, std::int64_t count) {
    add_layers(module, name, prefix, count, tensors, layer_module);
  };
  const auto activated = [&](const std::string& units) {
    return fmt::format("torch.{}({})", name_of(settings.activation), units);
  };
  std::string code;
  if (settings.module == "residual") {
    const std::int64_t blocks = settings.depth - 1;
    add_layer("input");
    add_list("first", blocks);
    add_list("second", blocks);
    code += "  units = self.input.forward(units)\n";
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::string inner = activated(applied("first", block, "units"));
      code += fmt::format("  units = units + {}\n", applied("second", block, inner));
    }
  } else if (settings.module == "layernorm") {
    const std::int64_t hidden = settings.depth - 1;
    add_list("layers", hidden);
    add_layers(module, "norms", prefix, hidden, tensors, norm_module);
    for (std::int64_t index = 0; index < hidden; ++index) {
      code += fmt::format("  units = {}\n",
                          activated(applied("norms", index, applied("layers", index, "units"))));
    }
  } else {
    const std::int64_t hidden = std::max<std::int64_t>(settings.depth - 2, 0);
    for (const char* name : {"input", "query", "key", "value"}) add_layer(name);
    add_list("layers", hidden);
    code += fmt::format(
        "  units = self.input.forward(units)\n"
        "  likeness = torch.matmul(self.query.forward(units), self.key.forward(units).t()) * {:.17g}\n"
        "  units = units + torch.matmul(torch.softmax(likeness, 1), self.value.forward(units))\n"
        "  units = {}\n",
        1.0 / std::sqrt(static_cast<double>(settings.width)), activated("units"));
    for (std::int64_t index = 0; index < hidden; ++index)
      code += fmt::format("  units = {}\n", activated(applied("layers", index, "units")));
  }
  add_layer("output");
  return code + "  units = self.output.forward(units)\n";
}

/// Adds the module of a TorchScript file with the parameters of a model, in double.
std::string add_file(Module& module, const LoadedModel& model,
                     const std::vector<ModelTensors::Tensor>& tensors, const std::string& prefix) {
  std::istringstream bytes(*model.settings.module_file);
  const Module file = torch::jit::load(bytes, torch::kCPU);
  for (auto parameter : file.named_parameters()) {
    for (const auto& tensor : tensors) {
      if (tensor.name == prefix + parameter.name) parameter.value.set_data(values_of(tensor));
    }
    parameter.value.set_data(parameter.value.to(torch::kDouble));
    parameter.value.set_requires_grad(false);
  }
  for (auto buffer : file.named_buffers()) {
    if (buffer.value.is_floating_point()) buffer.value.set_data(buffer.value.to(torch::kDouble));
  }
  module.register_module("module", file);
  return "  units = self.module.forward(units).unsqueeze(1)\n";
}

/// Adds the network whose tensors begin with `prefix` to a module. Returns the code that turns `units` from
/// inputs into the network's outputs.
std::string add_network(Module& module, const LoadedModel& model,
                        const std::vector<ModelTensors::Tensor>& tensors, const std::string& prefix) {
  if (model.is_linear()) {
    module.register_module("linear", layer_module(prefix + "linear", tensors));
    if (!model.is_additive()) return "  units = self.linear.forward(units)\n";
    module.register_module("cosines", layer_module(prefix + "cosines", tensors));
    std::string weights = "self.linear.weight.flatten(), self.cosines.weight.flatten()";
    if (!model.normaliser.products.empty()) {
      module.register_module("products", layer_module(prefix + "products", tensors));
      weights += ", self.products.weight.flatten()";
    }
    return fmt::format("  theta = torch.cat([{}]).reshape([-1, 1])\n", weights) +
           "  units = torch.matmul(units, theta.double())\n";
  }
  if (model.settings.module_file) return add_file(module, model, tensors, prefix);
  if (!model.has_closed_form()) return add_built_in(module, model, tensors, prefix);
  Module layers("__torch__.olrank.Layers");
  std::string chain = "def forward(self, units: Tensor) -> Tensor:\n";
  for (std::int64_t index = 0; index < model.shape.depth; ++index) {
    layers.register_module(std::to_string(index),
                           layer_module(fmt::format("{}layers.{}", prefix, index), tensors));
    if (index > 0) chain += "  units = torch.relu(units)\n";
    chain += fmt::format("  units = getattr(self, \"{}\").forward(units)\n", index);
  }
  layers.define(chain + "  return units\n");
  module.register_module("layers", layers);
  return "  units = self.layers.forward(units)\n";
}

/// Adds all members of an ensemble. The code leaves the sum of their outputs in `units`.
std::string add_members(Module& module, const LoadedModel& model,
                        const std::vector<ModelTensors::Tensor>& tensors) {
  Module members("__torch__.olrank.Members");
  std::string sum = "def forward(self, units: Tensor) -> Tensor:\n";
  for (std::size_t number = 0; number < model.members.size(); ++number) {
    Module member("__torch__.olrank.Member");
    const std::string code = add_network(member, model, tensors, fmt::format("members.{}.", number));
    member.define("def forward(self, units: Tensor) -> Tensor:\n" + code + "  return units\n");
    members.register_module(std::to_string(number), member);
    sum += fmt::format("  {} getattr(self, \"{}\").forward(units)\n",
                       number == 0 ? "outputs =" : "outputs = outputs +", number);
  }
  members.define(sum + "  return outputs\n");
  module.register_module("members", members);
  return "  units = self.members.forward(units)\n";
}

}  // namespace

std::string torch_script_of(const LoadedModel& model) {
  require_own_function(model, "TorchScript");
  const std::string& name = model.settings.module;
  if (model.module && !is_built_in_module(name) && !model.settings.module_file) {
    throw_error<InvalidArgument>(
        "Module '{}' is written in C++, which TorchScript cannot hold: load the model file with the olrank "
        "that has the module, or export its tensors with --to pt or --to safetensors.",
        name);
  }
  const auto tensors = tensors_of(model);
  const double output_scale = model.settings.module_file ? 1.0 : model.shape.output_scale;
  Module module("__torch__.olrank.Model");
  std::string code = "def forward(self, docs: Tensor) -> Tensor:\n  units = docs.float()\n";
  code += normalisation_code(model.normaliser, module);
  const bool ensemble = tensors.front().name.starts_with("members.");
  code += ensemble ? add_members(module, model, tensors) : add_network(module, model, tensors, "");
  code += fmt::format("  return units.squeeze(1) * {:.17g}\n",
                      output_scale / static_cast<double>(model.members.size()));
  module.define(code);
  module.eval();
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  for (const auto& [key, text] : complete_metadata(model)) metadata[key] = text;
  std::ostringstream bytes;
  module.save(bytes, {{"olrank.json", dump_json(metadata)}});
  return std::move(bytes).str();
}

}  // namespace olrank
