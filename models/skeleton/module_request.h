#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// φ of a hidden layer.
enum class Activation { kRelu, kGelu, kSilu, kTanh };

/// A module is made of this. It reads what it has a use for; a TorchScript file brings all of it.
struct ModuleRequest {
  std::string module = "relu";  // a registered name, or the path of a TorchScript file: FILE.pt
  std::int64_t features = 1;    // d: columns of the documents
  std::int64_t width = 100;     // m: units of a hidden layer
  std::int64_t depth = 2;       // L: layers of weights, as in NetworkShape
  Activation activation = Activation::kRelu;
  bool biases = true;         // of linear layers
  double output_scale = 1.0;  // factor of the scores; √m in the ntk parameterisation
  bool symmetric = false;  // relu starts with two halves that cancel; other modules draw as LibTorch does
  /// This is what a TorchScript file holds, where it is at hand; else it is read.
  std::shared_ptr<const std::string> file = nullptr;
};

/// Whether the name of a module is that of a TorchScript file: it ends in .pt.
bool is_module_file(std::string_view module);

/// Whether a module comes with the program: relu, residual, layernorm or attention.
bool is_built_in_module(std::string_view module);

/// The registered names, in alphabetical order.
std::vector<std::string> module_names();

}  // namespace olrank
