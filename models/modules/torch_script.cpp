#include "models/modules/torch_script.h"

#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "core/io/json.h"
#include "models/export/export_format.h"

namespace olrank {
namespace {

using torch::jit::Module;

torch::Tensor tensor_of(std::span<const double> values) {
  return torch::tensor(torch::ArrayRef<double>(values.data(), values.size()), torch::kDouble);
}

/// The inputs of the network from the raw features `docs`, rounded to floats on the way as the program
/// does.
std::string normalisation_code(const FittedNormaliser& normaliser, Module& module) {
  std::string code;
  if (!normaliser.kept.empty()) {
    const std::vector<std::int64_t>& kept = normaliser.kept;
    module.register_buffer(
        "kept", torch::tensor(torch::ArrayRef<std::int64_t>(kept.data(), kept.size()), torch::kLong));
    code += "  units = torch.index_select(units, 1, self.kept)\n";
  }
  code += "  units = units.double()\n";
  switch (normaliser.kind) {
    case Normalisation::kNone:
      return code;
    case Normalisation::kQueryMinmax:
      code +=
          "  if units.size(0) > 0:\n"
          "    low = torch.amin(units, [0])\n"
          "    reach = torch.amax(units, [0]) - low\n"
          "    units = (units - low) / torch.where(reach > 0.0, reach, torch.ones_like(reach))\n";
      break;
    case Normalisation::kLog1pZscore:
      code += "  units = torch.sign(units) * torch.log1p(torch.abs(units))\n";
      [[fallthrough]];
    case Normalisation::kZscore: {
      std::vector<double> means;
      std::vector<double> scales;
      for (std::int64_t input = 0; input < normaliser.inputs(); ++input) {
        const std::int64_t feature = normaliser.kept.empty() ? input : normaliser.kept[input];
        means.push_back(normaliser.means[feature]);
        scales.push_back(normaliser.scales[feature]);
      }
      module.register_buffer("means", tensor_of(means));
      module.register_buffer("scales", tensor_of(scales));
      code += "  units = (units - self.means) * self.scales\n";
      break;
    }
  }
  return code + "  units = units.float().double()\n";
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
    const torch::Tensor values =
        torch::from_blob(const_cast<float*>(tensor.values.data()), tensor.shape, torch::kFloat).clone();
    layer.register_parameter(name, values, false);
    if (name == "bias") code += "  units = units + self.bias.double()\n";
  }
  layer.define(code + "  return units\n");
  return layer;
}

/// Adds the network whose tensors begin with `prefix` to a module. Returns the code that turns `units` from
/// inputs into the network's outputs.
std::string add_network(Module& module, const LoadedModel& model,
                        const std::vector<ModelTensors::Tensor>& tensors, const std::string& prefix) {
  if (model.is_linear()) {
    module.register_module("linear", layer_module(prefix + "linear", tensors));
    return "  units = self.linear.forward(units)\n";
  }
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
  const auto tensors = tensors_of(model);
  Module module("__torch__.olrank.Model");
  std::string code = "def forward(self, docs: Tensor) -> Tensor:\n  units = docs.float()\n";
  code += normalisation_code(model.normaliser, module);
  const bool ensemble = tensors.front().name.starts_with("members.");
  code += ensemble ? add_members(module, model, tensors) : add_network(module, model, tensors, "");
  code += fmt::format("  return units.squeeze(1) * {:.17g}\n",
                      model.shape.output_scale / static_cast<double>(model.members.size()));
  module.define(code);
  module.eval();
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  for (const auto& [key, text] : complete_metadata(model)) metadata[key] = text;
  std::ostringstream bytes;
  module.save(bytes, {{"olrank.json", dump_json(metadata)}});
  return std::move(bytes).str();
}

}  // namespace olrank
